//! Random declarations at a base and on a branch, against a random live state: what the branch did
//! not ask for stays unchanged, everything else matches afterwards.

use std::{collections::BTreeSet, sync::Mutex};

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use undrift::{
    api::WriteClient,
    apply::{self, Apply, BranchPlan},
    desired::{Acknowledgement, Container, Desired},
    diff::{FieldChange, Label, Problem, Step},
    plan::{ApprovalPolicy, Base, BaseComparison, BranchPart, DriftPolicy, Extent, Plan},
    sandbox::Profile,
};

use crate::{
    random::{cases, documents, group, project_sections, world},
    world::{World, project, seed},
};

/// A plan against a base that writes drift or excludes it, and the declarations without excluded parts.
async fn plan_against(world: &World, head: &Desired, base: &Base, heals: bool) -> (Plan, Desired) {
    let drift_policy = if heals { DriftPolicy::Write } else { DriftPolicy::Exclude };
    plan_as(world, world.sandbox.token(), head, base, drift_policy).await
}

/// A plan of a user against a base with this treatment of drift, and the declarations without excluded parts.
async fn plan_as(
    world: &World,
    token: &str,
    head: &Desired,
    base: &Base,
    drift: DriftPolicy,
) -> (Plan, Desired) {
    let (observer, settings) = world.connect_as(token, head).await.unwrap();
    let found = Mutex::new((Plan::default(), BaseComparison::default(), Vec::new()));
    let each = async |container: &Container, mut live| {
        let BranchPlan { plan, branch_part: rest, comparison: against } =
            apply::plan_against(&observer, container, base, drift, &mut live, &settings).await?;
        let mut found = found.lock().unwrap();
        found.0.add(container, plan, live);
        found.1.extend(against);
        match rest {
            BranchPart::Whole => found.2.push(container.clone()),
            BranchPart::Partial(rest) => found.2.push(*rest),
            BranchPart::Nothing => {}
        }
        Ok(())
    };
    observer.read_all(&head.containers, 4, each).await.unwrap();
    let (mut plan, against, mut containers) = found.into_inner().unwrap();
    plan.base = Some(against);
    let extent = Extent { ignores_drift: drift == DriftPolicy::Show, ..world.extent };
    let mut plan = plan.finish(&extent);
    let acknowledged: Vec<_> =
        world.acknowledged.iter().map(|ack| Acknowledgement::parse(ack).unwrap()).collect();
    plan.acknowledge(&acknowledged, &settings.moves, jiff::civil::date(2030, 1, 1));
    containers.sort_by_key(|container| container.path.to_lowercase());
    (plan, Desired { containers, ..head.clone() })
}

/// Plans and applies; every step must succeed, and nothing planned may be left.
async fn apply_against(world: &World, head: &Desired, base: &Base, heals: bool) -> Plan {
    let (plan, rest) = plan_against(world, head, base, heals).await;
    assert!(plan.problems.is_empty() && plan.refusals.is_empty(), "{plan:#?}");
    assert!(plan.incomplete.is_empty(), "{plan:#?}");
    let (observer, settings) = world.connect(head).await.unwrap();
    let (approved, _) = plan.approve(ApprovalPolicy::default()).unwrap();
    let writer = WriteClient::new(observer.client().clone());
    let apply = Apply {
        desired: &rest,
        observer: &observer,
        writer: &writer,
        settings: &settings,
        max_containers: 4,
        trust_duration: world.trust_time,
    };
    let applied = apply.run(&approved, |_| ()).await;
    let failed: Vec<_> = applied.steps.iter().filter(|step| !step.outcome.is_success()).collect();
    assert!(applied.is_complete(), "{failed:#?} {:#?} of {plan:#?}", applied.mismatches);
    plan
}

/// The steps by address and field.
fn differences(steps: &[Step]) -> BTreeSet<String> {
    let fields = |step: &Step| {
        let fields: Vec<_> = step.changes.iter().map(|change| change.field.to_string()).collect();
        let step_text = format!("{:?} {}", step.action, step.address);
        fields.into_iter().map(move |field| format!("{step_text} {field}"))
    };
    steps.iter().flat_map(fields).collect()
}

/// The steps in short form, with their labels.
fn describe_steps(steps: &[Step]) -> Vec<String> {
    let field = |change: &FieldChange| format!("{}: {:?}", change.field, change.label);
    let line = |step: &Step| {
        let fields: Vec<_> = step.changes.iter().map(field).collect();
        format!("{:?} {} {:?} {fields:?}", step.action, step.address, step.label)
    };
    steps.iter().map(line).collect()
}

/// `base` with those sections of `other` whose bit is set in `mask`.
fn mix_sections(base: &Json, other: &Json, mask: u16) -> Json {
    let mut mixed = base.clone();
    // Users, and entries that name them, are declared together.
    let linked = ["members", "shares", "protected_branches", "protected_tags", "approval_rules"];
    for (index, (name, section)) in other.as_object().unwrap().iter().enumerate() {
        let at = if linked.contains(&name.as_str()) { 15 } else { index };
        if mask & (1 << at) != 0 {
            mixed[name] = section.clone();
        }
    }
    mixed
}

#[test]
fn drift_stays_unless_it_is_healed() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let states = (
        group(),
        project_sections(),
        project_sections(),
        project_sections(),
        any::<u16>(),
        any::<u16>(),
    );
    cases(16)
        .run(&states, |(team, old, other, live, mask, drifted)| {
            runtime.block_on(async {
                let world = world().await;
                let documents = |sections| documents(team.clone(), sections);
                world.declare(&documents(mix_sections(&old, &live, drifted)));
                world.converge("from nothing").await;
                world.declare(&documents(old.clone()));
                let base = world.desired().containers;
                world.declare(&documents(mix_sections(&old, &other, mask)));
                let head = world.desired();
                let base = Base::from_containers(base, &head.containers);

                let (first, _) = plan_against(&world, &head, &base, true).await;
                let (second, _) = plan_against(&world, &head, &base, true).await;
                let labels = |plan: &Plan| plan.steps.iter().map(|s| s.label).collect::<Vec<_>>();
                assert_eq!(labels(&first), labels(&second), "labels are stable");

                let plan = apply_against(&world, &head, &base, false).await;
                let left = &plan.base.as_ref().unwrap().excluded_steps;
                let (after, _) = plan_against(&world, &head, &base, true).await;
                let others: Vec<_> =
                    after.steps.iter().filter(|step| step.label != Some(Label::Drift)).collect();
                assert!(
                    others.is_empty(),
                    "only drift is left, and not {:?}: first {:?}, planned {:?}",
                    describe_steps(&after.steps),
                    describe_steps(&first.steps),
                    describe_steps(&plan.steps),
                );
                let (left, done) = (differences(left), differences(&plan.steps));
                assert!(left.is_disjoint(&done), "{left:?} {done:?}");
                // The service also removes what named a removed entry.
                let after = differences(&after.steps);
                assert!(after.is_subset(&left), "no new drift: {after:?} of {left:?}");
                let nothing = apply_against(&world, &head, &base, false).await;
                assert!(nothing.steps.is_empty(), "{nothing:#?}");

                apply_against(&world, &head, &base, true).await;
                let (healed, _) = plan_against(&world, &head, &base, true).await;
                assert!(healed.steps.is_empty(), "{healed:#?}");
            });
            Ok(())
        })
        .unwrap();
}

/// Drift is repaired only where a change of the branch needs it.
#[test]
fn drift_that_a_change_needs_is_repaired() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sections = |rule: Json| {
        json!({
            "members": [
                {"user": "alice", "access_level": "developer"},
                {"user": "bob", "access_level": "developer"},
            ],
            "approval_rules": [rule],
        })
    };
    let before = sections(json!({"name": "A", "approvals_required": 1}));
    let after = sections(json!({"name": "A", "approvals_required": 1, "users": ["alice"]}));
    runtime.block_on(async {
        let world = World::new(Profile::default(), seed(&[json!({"path": "acme/shop"})])).await;
        let there = json!({"approval_rules": [{"name": "A", "approvals_required": 1}]});
        world.declare(&[project("acme/shop", there)]);
        world.converge("without members").await;
        world.declare(&[project("acme/shop", before)]);
        let base = world.desired().containers;
        world.declare(&[project("acme/shop", after)]);
        let head = world.desired();
        let base = Base::from_containers(base, &head.containers);
        let plan = apply_against(&world, &head, &base, false).await;
        let done: Vec<_> = plan
            .steps
            .iter()
            .map(|step| format!("{} {:?}", step.address, step.label.unwrap()))
            .collect();
        assert_eq!(
            done,
            ["acme/shop#members/alice Both", "acme/shop#approval_rules/A Change"],
            "{plan:#?}"
        );
        let left = plan.base.unwrap().excluded_steps;
        assert_eq!(left.len(), 1, "bob is nobody's business: {left:#?}");
    });
}

/// An excluded text has no references, although the branch changes another field.
#[test]
fn excluded_drift_is_not_repaired_for_a_change() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sections = |method: &str| {
        json!({
            "settings": {"description": "b", "merge_method": method},
            "approval_rules": [{"name": "B", "approvals_required": 2}],
        })
    };
    runtime.block_on(async {
        let world = World::new(Profile::default(), seed(&[json!({"path": "acme/shop"})])).await;
        world.declare(&[project("acme/shop", sections("merge"))]);
        let base = world.desired().containers;
        world.declare(&[project("acme/shop", sections("ff"))]);
        let head = world.desired();
        let base = Base::from_containers(base, &head.containers);
        let plan = apply_against(&world, &head, &base, false).await;
        let all = |steps: &[Step]| differences(steps).into_iter().collect::<Vec<_>>();
        assert_eq!(all(&plan.steps), ["Update acme/shop#settings merge_method"]);
        assert_eq!(
            all(&plan.base.unwrap().excluded_steps),
            [
                "Create acme/shop#approval_rules/B approvals_required",
                "Create acme/shop#approval_rules/B name",
                "Update acme/shop#settings description",
            ]
        );
    });
}

/// 300 projects, of which a branch changes one: the others cost nothing.
#[test]
fn only_containers_with_changed_declarations_are_read() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let path = |n: usize| format!("acme/p{n}");
    let document = |n: usize, description: &str| {
        let settings = json!({"description": description, "merge_method": "ff"});
        let variables = json!([{"key": "A", "value": "a"}]);
        project(&path(n), json!({"settings": settings, "variables": variables}))
    };
    runtime.block_on(async {
        let projects: Vec<_> = (0..300).map(|n| json!({"path": path(n)})).collect();
        let world = World::new(Profile::default(), seed(&projects)).await;
        let documents = |changed: &str| -> Vec<_> {
            (0..300).map(|n| document(n, if n == 7 { changed } else { "same" })).collect()
        };
        world.declare(&documents("old"));
        let base = world.desired().containers;
        world.declare(&documents("new"));
        let mut head = world.desired();
        let base = Base::from_containers(base, &head.containers);
        let before = world.requests().len();
        plan_against(&world, &head, &base, true).await;
        let all = world.requests().len() - before;
        head.containers = base.changed_containers(head.containers);
        assert_eq!(head.containers.len(), 1);
        let before = world.requests().len();
        let (plan, _) = plan_against(&world, &head, &base, true).await;
        let changed = world.requests().len() - before;
        assert_eq!(plan.steps.len(), 2, "the description and the variable, which is not there");
        // The lists of the group, one list of variables for each project, and the token.
        assert_eq!((all, changed), (304, 3));
    });
}

/// Somebody deleted a group with its project; the branch adds another project to it.
#[test]
fn a_deleted_group_is_created_for_its_new_projects() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let document = |kind: &str, path: &str| json!({"kind": kind, "path": path, "create": true});
    let before = [document("Group", "acme/team"), document("Project", "acme/team/old")];
    let mut after = before.to_vec();
    after.push(document("Project", "acme/team/neo"));
    runtime.block_on(async {
        let world = World::new(Profile::default(), seed(&[])).await;
        world.declare(&before);
        let base = world.desired().containers;
        let nothing = Base::from_containers(base.clone(), &base);
        let (plan, rest) = plan_against(&world, &world.desired(), &nothing, false).await;
        assert!(plan.steps.is_empty() && rest.containers.is_empty(), "all of it is drift");
        world.declare(&after);
        let head = world.desired();
        let base = Base::from_containers(base, &head.containers);
        let plan = apply_against(&world, &head, &base, false).await;
        let done: Vec<_> =
            plan.steps.iter().map(|s| format!("{} {:?}", s.address, s.label.unwrap())).collect();
        assert_eq!(done, ["acme/team Both", "acme/team/neo Change"]);
    });
}

/// Somebody changed the service so that the base cannot be planned either. A branch that changes
/// something else is planned and applied without that.
#[test]
fn a_problem_of_drift_does_not_block_a_branch_that_does_not_need_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let variable = json!({"variables": [{"key": "A", "value": "one-two-three"}]});
    let rule =
        json!({"protected_branches": [{"name": "x", "allowed_to_push": [{"group": "team"}]}]});
    let description = json!({"settings": {"visibility": "public", "description": "new"}});
    let share = json!({"shares": [{"group": "team", "group_access": "developer"}]});
    let label = json!({"labels": [{"name": "b", "previously": ["a"], "color": "#112233"}]});
    let lock = || ("PUT", "/groups/acme", json!({"share_with_group_lock": true}));
    for (base, branch, drift, problem, is_needed) in [
        (
            json!({"members": [{"user": "bob", "access_level": "developer"}]}),
            &variable,
            vec![
                ("DELETE", "/projects/acme%2Fshop/members/BOB", json!({})),
                ("POST", "/groups/acme/members", json!({"user_id": "BOB", "access_level": 40})),
            ],
            "",
            false,
        ),
        (
            share.clone(),
            &variable,
            vec![lock(), ("DELETE", "/projects/acme%2Fshop/share/TEAM", json!({}))],
            "locked",
            false,
        ),
        (
            share,
            &rule,
            vec![lock(), ("DELETE", "/projects/acme%2Fshop/share/TEAM", json!({}))],
            "locked",
            true,
        ),
        (
            json!({"job_token_allowlist": [{"project": "acme/other"}]}),
            &variable,
            vec![("PUT", "/projects/acme%2Fother", json!({"path": "zzz"}))],
            "unknown-project",
            false,
        ),
        (
            label,
            &variable,
            vec![(
                "POST",
                "/projects/acme%2Fshop/labels",
                json!({"name": "a", "color": "#112233"}),
            )],
            "previously",
            false,
        ),
        (
            json!({"settings": {"visibility": "public", "description": "old"}}),
            &description,
            vec![
                ("PUT", "/projects/acme%2Fshop", json!({"visibility": "private"})),
                ("PUT", "/projects/acme%2Fother", json!({"visibility": "private"})),
                ("PUT", "/groups/acme", json!({"visibility": "private"})),
            ],
            "too-visible",
            false,
        ),
    ] {
        runtime.block_on(async {
            let projects = [json!({"path": "acme/shop"}), json!({"path": "acme/other"})];
            let mut seed = seed(&projects);
            seed["groups"].as_array_mut().unwrap().push(json!({"path": "team"}));
            let profile = Profile::default().with_release("18.9".parse().unwrap());
            let mut world = World::new(profile, seed).await;
            world.acknowledged = vec!["protection:**", "visibility:**"];
            world.declare(&[project("acme/shop", base.clone())]);
            world.converge("the base").await;
            let id = |found: &Json| found["id"].to_string();
            let bob = id(&world.get("/users?username=bob").await[0]);
            let team = id(&world.get("/groups/team").await);
            for (method, path, body) in drift {
                let path = path.replace("BOB", &bob).replace("TEAM", &team);
                let body = body.to_string().replace("\"BOB\"", &bob);
                world.call(method, &path, Some(serde_json::from_str(&body).unwrap())).await;
            }
            let base_containers = world.desired().containers;
            let mut sections = base.clone();
            sections.as_object_mut().unwrap().extend(branch.as_object().unwrap().clone());
            world.declare(&[project("acme/shop", sections)]);
            let head = world.desired();
            let base = Base::from_containers(base_containers, &head.containers);
            for drift_policy in [DriftPolicy::Show, DriftPolicy::Exclude] {
                let token = world.sandbox.token();
                let (plan, _) = plan_as(&world, token, &head, &base, drift_policy).await;
                let codes = |problems: &[Problem]| -> Vec<_> {
                    problems.iter().map(|problem| problem.code).collect()
                };
                let noted = &plan.base.as_ref().unwrap().problems;
                let all = [codes(&plan.problems), codes(noted)];
                let expected =
                    if is_needed { [vec![problem], vec![]] } else { [vec![], vec![problem]] };
                // The member is drift with a step, which only a plan shows.
                if !problem.is_empty() {
                    assert_eq!(all, expected, "{drift_policy:?} {plan:#?}");
                }
                assert_eq!(plan.problems.is_empty(), !is_needed, "{drift_policy:?} {plan:#?}");
            }
            if !is_needed {
                let plan = apply_against(&world, &head, &base, false).await;
                assert_eq!(plan.steps.len(), 1, "{plan:#?}");
            }
        });
    }
}

/// Somebody made the project visible, which only an owner can undo. A maintainer's branch does not need that.
#[test]
fn drift_for_owners_does_not_block_the_branch_of_a_maintainer() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let token = "token-of-carol";
    let declare = |visibility: &str, description: &str| {
        let settings = json!({"visibility": visibility, "description": description});
        [project("acme/shop", json!({"settings": settings}))]
    };
    runtime.block_on(async {
        let carol = json!([{"user": "carol", "access_level": "maintainer"}]);
        let mut seed = seed(&[json!({"path": "acme/shop", "members": carol})]);
        seed["users"][2]["token"] = token.into();
        let world = World::new(Profile::default(), seed).await;
        world.call("PUT", "/projects/acme%2Fshop", Some(json!({"visibility": "public"}))).await;
        world.declare(&declare("private", "old"));
        let base = world.desired().containers;
        for (visibility, is_needed) in [("private", false), ("internal", true)] {
            world.declare(&declare(visibility, "new"));
            let head = world.desired();
            let base = Base::from_containers(base.clone(), &head.containers);
            for drift_policy in [DriftPolicy::Show, DriftPolicy::Exclude] {
                let (plan, _) = plan_as(&world, token, &head, &base, drift_policy).await;
                let codes: Vec<_> = plan.problems.iter().map(|problem| problem.code).collect();
                let expected = if is_needed { vec!["low-role"] } else { Vec::new() };
                assert_eq!(codes, expected, "{visibility} {drift_policy:?} {plan:#?}");
            }
        }
    });
}
