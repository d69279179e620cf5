//! What a run does after a reading before its first write.

use futures_util::FutureExt as _;
use serde_json::json;

use super::{
    testing::{after, before, declared, reading, with_plan, with_run},
    *,
};
use crate::{
    diff::{Edge, Findings, Incomplete, Problem},
    kind::{Capability, Effect},
    live::{LiveEntries, testing::live_container},
    plan::{Acknowledged, Plan},
    value::Json,
};

/// A step planned again keeps its planned edges, and gets no edge that contradicts them.
#[test]
fn a_step_planned_again_keeps_its_planned_edges() {
    let container = declared();
    let live = live_container(&container, &before());
    let variables = container.address().section("variables");
    let [settings, variable] = [container.address().section("settings"), variables.entry("A@*")];
    let share = Address::container("acme".into()).section("shares").entry("other");
    let badges = container.address().section("badges");
    let edges = |all: &[&Address]| -> Vec<_> {
        all.iter().map(|at| Edge { address: (*at).clone(), reason: "of a rule" }).collect()
    };
    let planned = || reading(&container, &live, &[]).plan.findings.steps;
    for (at, in_plan, again, expected) in [
        // The plan has it the other way round.
        (1, [&edges(&[&variable])[..], &[]], edges(&[&settings]), edges(&[])),
        (1, [&edges(&[&variables]), &[]], edges(&[&settings]), edges(&[&settings])),
        (0, [&edges(&[&variable, &share]), &[]], edges(&[]), edges(&[&variable, &share])),
        (1, [&[], &edges(&[&settings])], edges(&[&badges]), edges(&[&settings, &badges])),
        (0, [&edges(&[&variables]), &[]], edges(&[&variable]), edges(&[&variables])),
        (0, [&[], &[]], edges(&[&variable]), edges(&[&variable])),
    ] {
        let mut steps = planned();
        for (step, edges) in steps.iter_mut().zip(in_plan) {
            step.after = edges.to_vec();
        }
        let found = with_run(&container, steps, &live, |run| {
            let progress = StepProgress::new(run.steps);
            let step = Step { after: again.clone(), ..run.steps[at].clone() };
            run.with_planned_edges(step, &progress).unwrap().after
        });
        assert_eq!(found, expected, "{at} {in_plan:?} {again:?}");
    }
}

/// Plans have no circles of edges. With one, a run would wait without end.
#[test]
fn steps_that_wait_for_each_other_are_skipped() {
    let container = declared();
    let live = live_container(&container, &before());
    let mut steps = reading(&container, &live, &[]).plan.findings.steps;
    let addresses: Vec<_> = steps.iter().map(|step| step.address.clone()).collect();
    for (step, address) in steps.iter_mut().zip(addresses.into_iter().rev()) {
        step.after = vec![Edge { address, reason: "of a rule" }];
    }
    let outcomes = with_run(&container, steps.clone(), &live, |run| {
        let progress = StepProgress::new(run.steps);
        let mut state = RunState { progress, ..RunState::default() };
        let ended = run.run_steps(steps, &Times::default(), &mut state).now_or_never();
        ended.expect("nothing is sent");
        state.results.into_values().map(|result| result.outcome).collect::<Vec<_>>()
    });
    assert_eq!(outcomes.len(), 2);
    let is_skipped = |outcome: &StepOutcome| matches!(outcome, StepOutcome::Skipped(_));
    assert!(outcomes.iter().all(is_skipped), "{outcomes:?}");
}

/// A container is as planned, or one of its steps has the reason why it is not.
#[test]
fn a_changed_container_is_reported_at_one_of_its_steps() {
    let container = declared();
    let live = live_container(&container, &before());
    let planned = || reading(&container, &live, &[]).plan;
    let settings = || container.address().section("settings");
    let variable = || container.address().section("variables").entry("A@*");
    let problem = |address: Address| Problem {
        address,
        code: "x",
        message: "a problem".to_owned(),
        help: None,
        origin: container.origin.clone(),
    };
    let unread = |address: Address| Incomplete { address, reason: Cause::new("503") };
    let refusal = |objects: usize| {
        let guard = crate::desired::Guard::Protection;
        GuardRefusal::new(guard, &settings(), "refused".to_owned(), objects, &container.origin)
    };
    let with = |change: &dyn Fn(&mut ContainerPlan)| {
        let mut plan = planned();
        change(&mut plan);
        plan
    };
    let turn = || Step { address: container.address(), ..planned().steps[0].clone() };
    let plan = |acknowledged: Option<GuardRefusal>| {
        let mut plan = Plan::for_test(planned().findings, 1);
        plan.acknowledged.extend(acknowledged.map(|refusal| Acknowledged {
            refusal,
            reason: None,
            by: None,
            is_new: false,
        }));
        plan
    };
    for (name, cache, fresh, expected) in [
        ("the same", None, planned(), None),
        ("done", None, reading(&container, &live_container(&container, &after()), &[]).plan, None),
        (
            "a problem of a step",
            None,
            with(&|plan| plan.findings.problems.push(problem(variable()))),
            Some((variable(), "changed", "a problem")),
        ),
        (
            "a problem of the section",
            None,
            with(&|plan| {
                let section = container.address().section("variables");
                plan.findings.problems.push(problem(section));
            }),
            Some((variable(), "changed", "a problem")),
        ),
        (
            "a problem elsewhere",
            None,
            with(&|plan| {
                plan.findings.problems.push(problem(container.address().section("hooks")));
            }),
            Some((settings(), "changed", "a problem")),
        ),
        (
            "unread",
            None,
            with(&|plan| plan.findings.incomplete.push(unread(variable()))),
            Some((variable(), "failed", "503")),
        ),
        (
            "moved",
            None,
            with(&|plan| plan.findings.steps.insert(0, turn())),
            Some((settings(), "changed", "renamed, moved or marked")),
        ),
        (
            "refused",
            None,
            with(&|plan| plan.findings.refusals.push(refusal(1))),
            Some((settings(), "changed", "a guard now refuses it")),
        ),
        (
            "refused and acknowledged",
            Some(refusal(1)),
            with(&|plan| plan.findings.refusals.push(refusal(1))),
            None,
        ),
        (
            "refused and acknowledged for less",
            Some(refusal(1)),
            with(&|plan| plan.findings.refusals.push(refusal(2))),
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
        let found = with_plan(&container, &plan(cache), &live, |run| run.first_stale_step(&fresh));
        let found = found.map(|(address, outcome)| {
            let word = match outcome {
                StepOutcome::ChangedMeanwhile(_) => "changed",
                StepOutcome::Failed(_) => "failed",
                _ => "something else",
            };
            (address, word, outcome.cause().unwrap().message.to_string())
        });
        match (found, expected) {
            (Some((address, word, why)), Some((at, expected, part))) => {
                assert_eq!((address, word), (at, expected), "{name}");
                assert!(why.contains(part), "{name}: {why}");
            }
            (found, expected) => assert_eq!(found.is_none(), expected.is_none(), "{name}"),
        }
    }
}

/// What could not be seen when it was planned is done as far as it is no more than was shown.
#[test]
fn a_possible_step_never_exceeds_the_plan() {
    let container = declared();
    let live = live_container(&container, &before());
    let variable = reading(&container, &live, &[]).plan.findings.steps.remove(1);
    let possible = |step: &Step| Step { possible: Some("unless it is so"), ..step.clone() };
    let entry = |value: &str| json!({"key": "A", "environment_scope": "*", "value": value, "variable_type": "env_var", "protected": true, "masked": false, "raw": false});
    let at = |entries: Json| {
        let there = json!({"settings": {"merge_method": "ff"}, "variables": entries});
        reading(&container, &live_container(&container, &there), &[]).plan
    };
    let refusal = |objects: usize| {
        let guard = crate::desired::Guard::Protection;
        GuardRefusal::new(
            guard,
            &variable.address,
            "refused".to_owned(),
            objects,
            &container.origin,
        )
    };
    let refused = |objects: usize| {
        let mut plan = at(json!([entry("old")]));
        plan.findings.refusals.push(refusal(objects));
        plan
    };
    let elsewhere = || {
        let mut plan = at(json!([entry("old")]));
        let other = GuardRefusal { address: container.address().section("settings"), ..refusal(1) };
        plan.findings.refusals.push(other);
        plan
    };
    let unread = || {
        let mut live = live_container(&container, &after());
        live.sections.insert("variables", LiveEntries::Unreadable(Cause::new("503")));
        reading(&container, &live, &[]).plan
    };
    // The same step as it would be planned now.
    let replanned = |change: &dyn Fn(&mut Step)| {
        let mut plan = at(json!([]));
        change(plan.findings.steps.iter_mut().find(|s| s.address == variable.address).unwrap());
        plan
    };
    let certain = || {
        let certain = at(json!([entry("old")])).findings.steps.remove(0);
        Some(Box::new(certain))
    };
    let creation = Step {
        address: container.address(),
        action: Action::Create,
        effects: vec![Effect::provides(Capability::Exists)],
        ..variable.clone()
    };
    let edited = Step { action: Action::Update, ..variable.clone() };
    for (name, planned, beside, acknowledged, now, expected) in [
        ("missing", &variable, None, None, at(json!([])), "Create"),
        ("differs", &variable, None, None, at(json!([entry("old")])), "Update"),
        ("is so", &variable, None, None, at(json!([entry("new")])), "already"),
        ("not read", &variable, None, None, unread(), "failed"),
        (
            "another value",
            &variable,
            None,
            None,
            replanned(&|step| step.changes.iter_mut().for_each(|c| c.field = "x".into())),
            "changed",
        ),
        (
            "a removal",
            &variable,
            None,
            None,
            replanned(&|step| step.action = Action::Delete),
            "changed",
        ),
        (
            "a replacement",
            &variable,
            None,
            None,
            replanned(&|step| step.replaces = true),
            "changed",
        ),
        (
            "still possible",
            &variable,
            None,
            None,
            replanned(&|step| (step.possible, step.certain) = (Some("x"), certain())),
            "Update",
        ),
        (
            "not even possible",
            &variable,
            None,
            None,
            replanned(&|step| step.possible = Some("x")),
            "already",
        ),
        ("refused", &variable, None, None, refused(1), "changed"),
        ("acknowledged", &variable, None, Some(refusal(1)), refused(1), "Update"),
        ("acknowledged for less", &variable, None, Some(refusal(1)), refused(2), "changed"),
        ("refused elsewhere", &variable, None, None, elsewhere(), "Update"),
        ("refused in what this run made", &variable, Some(&creation), None, refused(1), "Update"),
        ("refused and seen before", &edited, None, None, refused(1), "Update"),
    ] {
        let planned = possible(planned);
        let steps = beside.into_iter().cloned().chain([planned.clone()]).collect();
        let mut plan = Plan::for_test(Findings { steps, ..Findings::default() }, 1);
        plan.acknowledged.extend(acknowledged.map(|refusal| Acknowledged {
            refusal,
            reason: None,
            by: None,
            is_new: false,
        }));
        let found = with_plan(&container, &plan, &live, |run| run.narrow_replanned(&planned, &now));
        let found = match found {
            Ok(step) => format!("{:?}", step.action),
            Err(StepOutcome::Already) => "already".to_owned(),
            Err(StepOutcome::Failed(why)) if why.message.contains("503") => "failed".to_owned(),
            Err(StepOutcome::ChangedMeanwhile(_)) => "changed".to_owned(),
            Err(other) => format!("{other:?}"),
        };
        assert_eq!(found, expected, "{name}");
    }
}
