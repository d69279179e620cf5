//! Tests of the decisions of a run after its first reading.

use futures_util::FutureExt as _;
use serde_json::json;

use super::{
    testing::{declared_shop, live_after, live_before, reading, with_plan, with_run},
    *,
};
use crate::{
    diff::{Edge, Findings, GuardRefusal, Incomplete, Problem},
    kind::{Capability, Effect},
    live::{LiveEntries, testing::live_container},
    plan::{Acknowledged, Plan},
    value::Json,
};

/// A step of a new plan gets its planned edges, and no edge that contradicts them.
#[test]
fn a_step_planned_again_keeps_its_planned_edges() {
    let container = declared_shop();
    let live = live_container(&container, &live_before());
    let variables = container.address().with_section("variables");
    let [settings, variable] =
        [container.address().with_section("settings"), variables.with_entry("A@*")];
    let share = Address::container("acme".into()).with_section("shares").with_entry("other");
    let badges = container.address().with_section("badges");
    let edges = |addresses: &[&Address]| -> Vec<_> {
        addresses
            .iter()
            .map(|address| Edge { address: (*address).clone(), reason: "of a rule" })
            .collect()
    };
    let planned_steps = || reading(&container, &live, &[]).plan.findings.steps;
    for (index, planned_edges, new_edges, expected) in [
        // The plan has the opposite edge.
        (1, [&edges(&[&variable])[..], &[]], edges(&[&settings]), edges(&[])),
        (1, [&edges(&[&variables]), &[]], edges(&[&settings]), edges(&[&settings])),
        (0, [&edges(&[&variable, &share]), &[]], edges(&[]), edges(&[&variable, &share])),
        (1, [&[], &edges(&[&settings])], edges(&[&badges]), edges(&[&settings, &badges])),
        (0, [&edges(&[&variables]), &[]], edges(&[&variable]), edges(&[&variables])),
        (0, [&[], &[]], edges(&[&variable]), edges(&[&variable])),
    ] {
        let mut steps = planned_steps();
        for (step, edges) in steps.iter_mut().zip(planned_edges) {
            step.after = edges.to_vec();
        }
        let actual = with_run(&container, steps, &live, |run| {
            let progress = StepProgress::new(run.steps);
            let step = Step { after: new_edges.clone(), ..run.steps[index].clone() };
            run.merge_planned_edges(step, &progress).unwrap().after
        });
        assert_eq!(actual, expected, "{index} {planned_edges:?} {new_edges:?}");
    }
}

/// Plans have no cycles of edges. With a cycle, a run would wait forever.
#[test]
fn steps_that_wait_for_each_other_are_skipped() {
    let container = declared_shop();
    let live = live_container(&container, &live_before());
    let mut steps = reading(&container, &live, &[]).plan.findings.steps;
    let addresses: Vec<_> = steps.iter().map(|step| step.address.clone()).collect();
    for (step, address) in steps.iter_mut().zip(addresses.into_iter().rev()) {
        step.after = vec![Edge { address, reason: "of a rule" }];
    }
    let outcomes = with_run(&container, steps.clone(), &live, |run| {
        let progress = StepProgress::new(run.steps);
        let mut state = RunState { progress, ..RunState::default() };
        let run_result = run.run_steps(steps, &ReadTimes::default(), &mut state).now_or_never();
        run_result.expect("nothing is sent");
        state.results.into_values().map(|result| result.outcome).collect::<Vec<_>>()
    });
    assert_eq!(outcomes.len(), 2);
    let is_skipped = |outcome: &StepOutcome| matches!(outcome, StepOutcome::Skipped(_));
    assert!(outcomes.iter().all(is_skipped), "{outcomes:?}");
}

/// If a container changed since the plan, one of its steps reports the change.
#[test]
fn a_changed_container_is_reported_at_one_of_its_steps() {
    let container = declared_shop();
    let live = live_container(&container, &live_before());
    let first_plan = || reading(&container, &live, &[]).plan;
    let settings = || container.address().with_section("settings");
    let variable = || container.address().with_section("variables").with_entry("A@*");
    let make_problem = |address: Address| Problem {
        address,
        code: "x",
        message: "a problem".to_owned(),
        help: None,
        origin: container.origin.clone(),
    };
    let make_incomplete =
        |address: Address| Incomplete { address, reason: Cause::new("503"), origin: None };
    let refusal = |objects: usize| {
        let guard = crate::desired::Guard::Protection;
        GuardRefusal::new(guard, &settings(), "refused".to_owned(), objects, &container.origin)
    };
    let changed_plan = |change: &dyn Fn(&mut ContainerPlan)| {
        let mut plan = first_plan();
        change(&mut plan);
        plan
    };
    let rename_step = || Step { address: container.address(), ..first_plan().steps[0].clone() };
    let plan_with = |acknowledged: Option<GuardRefusal>| {
        let mut plan = Plan::for_test(first_plan().findings, 1);
        plan.acknowledged.extend(acknowledged.map(|refusal| Acknowledged {
            refusal,
            reason: None,
            by: None,
            is_new: false,
        }));
        plan
    };
    for (name, acknowledged, new_plan, expected) in [
        ("the same", None, first_plan(), None),
        (
            "done",
            None,
            reading(&container, &live_container(&container, &live_after()), &[]).plan,
            None,
        ),
        (
            "a problem of a step",
            None,
            changed_plan(&|plan| plan.findings.problems.push(make_problem(variable()))),
            Some((variable(), "changed", "a problem")),
        ),
        (
            "a problem of the section",
            None,
            changed_plan(&|plan| {
                let section = container.address().with_section("variables");
                plan.findings.problems.push(make_problem(section));
            }),
            Some((variable(), "changed", "a problem")),
        ),
        (
            "a problem elsewhere",
            None,
            changed_plan(&|plan| {
                plan.findings
                    .problems
                    .push(make_problem(container.address().with_section("hooks")));
            }),
            Some((settings(), "changed", "a problem")),
        ),
        (
            "unread",
            None,
            changed_plan(&|plan| plan.findings.incomplete.push(make_incomplete(variable()))),
            Some((variable(), "failed", "503")),
        ),
        (
            "moved",
            None,
            changed_plan(&|plan| plan.findings.steps.insert(0, rename_step())),
            Some((settings(), "changed", "renamed, moved or marked")),
        ),
        (
            "refused",
            None,
            changed_plan(&|plan| plan.findings.refusals.push(refusal(1))),
            Some((settings(), "changed", "a guard now refuses it")),
        ),
        (
            "refused and acknowledged",
            Some(refusal(1)),
            changed_plan(&|plan| plan.findings.refusals.push(refusal(1))),
            None,
        ),
        (
            "refused and acknowledged for less",
            Some(refusal(1)),
            changed_plan(&|plan| plan.findings.refusals.push(refusal(2))),
            Some((settings(), "changed", "a guard now refuses it")),
        ),
        (
            "another value",
            None,
            reading(
                &container,
                &live_container(
                    &container,
                    &json!({"settings": {"merge_method": "rebase_merge"}, "variables": []}),
                ),
                &[],
            )
            .plan,
            Some((settings(), "changed", "someone changed it")),
        ),
    ] {
        let actual = with_plan(&container, &plan_with(acknowledged), &live, |run| {
            run.find_stale_step(&new_plan)
        });
        let actual = actual.map(|(address, outcome)| {
            let word = match outcome {
                StepOutcome::ChangedMeanwhile(_) => "changed",
                StepOutcome::Failed(_) => "failed",
                _ => "something else",
            };
            (address, word, outcome.cause().unwrap().message.to_string())
        });
        match (actual, expected) {
            (Some((address, word, why)), Some((expected_address, expected, expected_text))) => {
                assert_eq!((address, word), (expected_address, expected), "{name}");
                assert!(why.contains(expected_text), "{name}: {why}");
            }
            (actual, expected) => assert_eq!(actual.is_none(), expected.is_none(), "{name}"),
        }
    }
}

/// A possible step is sent only if it does no more than the plan showed.
#[test]
fn a_possible_step_never_exceeds_the_plan() {
    let container = declared_shop();
    let live = live_container(&container, &live_before());
    let variable_step = reading(&container, &live, &[]).plan.findings.steps.remove(1);
    let make_possible = |step: &Step| Step { possible: Some("unless it is so"), ..step.clone() };
    let live_variable = |value: &str| json!({"key": "A", "environment_scope": "*", "value": value, "variable_type": "env_var", "protected": true, "masked": false, "raw": false});
    let plan_for = |entries: Json| {
        let live_json = json!({"settings": {"merge_method": "ff"}, "variables": entries});
        reading(&container, &live_container(&container, &live_json), &[]).plan
    };
    let refusal = |objects: usize| {
        let guard = crate::desired::Guard::Protection;
        GuardRefusal::new(
            guard,
            &variable_step.address,
            "refused".to_owned(),
            objects,
            &container.origin,
        )
    };
    let refused_plan = |objects: usize| {
        let mut plan = plan_for(json!([live_variable("old")]));
        plan.findings.refusals.push(refusal(objects));
        plan
    };
    let plan_refused_elsewhere = || {
        let mut plan = plan_for(json!([live_variable("old")]));
        let other =
            GuardRefusal { address: container.address().with_section("settings"), ..refusal(1) };
        plan.findings.refusals.push(other);
        plan
    };
    let unread_plan = || {
        let mut live = live_container(&container, &live_after());
        live.sections.insert("variables", LiveEntries::Unreadable(Cause::new("503")));
        reading(&container, &live, &[]).plan
    };
    // A new plan in which `change` modified the step for the variable.
    let plan_with_changed_step = |change: &dyn Fn(&mut Step)| {
        let mut plan = plan_for(json!([]));
        change(
            plan.findings.steps.iter_mut().find(|s| s.address == variable_step.address).unwrap(),
        );
        plan
    };
    let certain_step = || {
        let certain = plan_for(json!([live_variable("old")])).findings.steps.remove(0);
        Some(Box::new(certain))
    };
    let creation_step = Step {
        address: container.address(),
        action: Action::Create,
        effects: vec![Effect::provides(Capability::Exists)],
        ..variable_step.clone()
    };
    let update_step = Step { action: Action::Update, ..variable_step.clone() };
    for (name, planned, other_step, acknowledged, new_plan, expected) in [
        ("missing", &variable_step, None, None, plan_for(json!([])), "Create"),
        ("differs", &variable_step, None, None, plan_for(json!([live_variable("old")])), "Update"),
        ("is so", &variable_step, None, None, plan_for(json!([live_variable("new")])), "already"),
        ("not read", &variable_step, None, None, unread_plan(), "failed"),
        (
            "another value",
            &variable_step,
            None,
            None,
            plan_with_changed_step(&|step| {
                step.changes.iter_mut().for_each(|c| c.field = "x".into());
            }),
            "changed",
        ),
        (
            "a removal",
            &variable_step,
            None,
            None,
            plan_with_changed_step(&|step| step.action = Action::Delete),
            "changed",
        ),
        (
            "a replacement",
            &variable_step,
            None,
            None,
            plan_with_changed_step(&|step| step.replaces = true),
            "changed",
        ),
        (
            "still possible",
            &variable_step,
            None,
            None,
            plan_with_changed_step(&|step| {
                (step.possible, step.certain_part) = (Some("x"), certain_step());
            }),
            "Update",
        ),
        (
            "not even possible",
            &variable_step,
            None,
            None,
            plan_with_changed_step(&|step| step.possible = Some("x")),
            "already",
        ),
        ("refused", &variable_step, None, None, refused_plan(1), "changed"),
        ("acknowledged", &variable_step, None, Some(refusal(1)), refused_plan(1), "Update"),
        (
            "acknowledged for less",
            &variable_step,
            None,
            Some(refusal(1)),
            refused_plan(2),
            "changed",
        ),
        ("refused elsewhere", &variable_step, None, None, plan_refused_elsewhere(), "Update"),
        (
            "refused in what this run made",
            &variable_step,
            Some(&creation_step),
            None,
            refused_plan(1),
            "Update",
        ),
        ("refused and seen before", &update_step, None, None, refused_plan(1), "Update"),
    ] {
        let possible_step = make_possible(planned);
        let steps = other_step.into_iter().cloned().chain([possible_step.clone()]).collect();
        let mut plan = Plan::for_test(Findings { steps, ..Findings::default() }, 1);
        plan.acknowledged.extend(acknowledged.map(|refusal| Acknowledged {
            refusal,
            reason: None,
            by: None,
            is_new: false,
        }));
        let actual = with_plan(&container, &plan, &live, |run| {
            run.find_replanned(&possible_step, &new_plan)
        });
        let actual = match actual {
            Ok(step) => format!("{:?}", step.action),
            Err(StepOutcome::Already) => "already".to_owned(),
            Err(StepOutcome::Failed(why)) if why.message.contains("503") => "failed".to_owned(),
            Err(StepOutcome::ChangedMeanwhile(_)) => "changed".to_owned(),
            Err(other) => format!("{other:?}"),
        };
        assert_eq!(actual, expected, "{name}");
    }
}
