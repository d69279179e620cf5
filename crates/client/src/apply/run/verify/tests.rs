//! Tests of the mismatches after a run, with given live states.

use futures_util::FutureExt;
use serde_json::json;

use super::*;
use crate::{
    api::ApiError,
    apply::{
        StepOutcome,
        run::{
            progress::StepProgress,
            testing::{declared_shop, live_after, live_before, reading, with_run},
        },
    },
    desired::Container,
    diff::{Action, FieldChange, Shown},
    kind::{Capability, Effect},
    live::{LiveEntries, Presence, testing::live_container},
    operation::HOOK_CREATE,
    release::DetectedRelease,
};

/// The state of a run whose steps ended with these outcomes.
fn ended_state(run: &ContainerRun<'_>, outcomes: &[StepOutcome]) -> RunState<'static> {
    let mut state = RunState { progress: StepProgress::new(run.steps), ..RunState::default() };
    for (step, outcome) in run.steps.iter().zip(outcomes) {
        run.end_step(&mut state, step, outcome.clone());
    }
    state
}

/// After an error that ends the run, only the responses to writes count.
#[test]
fn nothing_is_read_after_an_error_that_ends_the_run() {
    let container = declared_shop();
    let live = live_container(&container, &live_before());
    let steps = reading(&container, &live, &[]).plan.findings.steps;
    with_run(&container, steps, &live, |run| {
        let mut ended = ended_state(run, &[StepOutcome::Done, StepOutcome::Done]);
        ended.progress.has_sent = true;
        run.steps.iter().for_each(|step| run.cache.borrow_mut().mark_stale(step, &container));
        ended.error = Some(ApiError::answered(HOOK_CREATE.row(), 401));
        run.verify(&mut ended).now_or_never().expect("nothing is read");
        assert_eq!(ended.mismatches, []);
    });
}

/// The reason for a remaining difference depends on the outcome of its step.
#[test]
fn a_remaining_difference_is_reported_unless_its_step_failed() {
    use MismatchReason::{ChangedMeanwhile, NotPlanned, NotSaved};
    let container = declared_shop();
    let live = live_container(&container, &live_before());
    let steps = reading(&container, &live, &[]).plan.findings.steps;
    let [first, other] = &steps[..] else { panic!("{steps:?}") };
    let failed_outcome = || StepOutcome::Failed(Cause::new("refused"));
    let make_possible = |step: &Step| Step { possible: Some("unless it is so"), ..step.clone() };
    let archive = Step {
        address: container.address().section("archived"),
        effects: vec![Effect::revokes(Capability::Writable)],
        ..first.clone()
    };
    let creation = Step { address: container.address(), action: Action::Create, ..first.clone() };
    let mut new_variable_step = other.clone();
    new_variable_step.address = container.address().section("variables").entry("B@*");
    for (name, planned, outcomes, remaining, expected) in [
        ("not saved", vec![first.clone()], vec![StepOutcome::Done], first, Some(NotSaved)),
        ("was so already", vec![first.clone()], vec![StepOutcome::Already], first, Some(NotSaved)),
        ("failed", vec![first.clone()], vec![failed_outcome()], first, None),
        ("not its turn", vec![archive.clone()], vec![], &archive, None),
        ("of another", vec![first.clone()], vec![StepOutcome::Done], other, Some(ChangedMeanwhile)),
        (
            "seen only now",
            vec![make_possible(other)],
            vec![StepOutcome::Done],
            &new_variable_step,
            Some(NotPlanned),
        ),
        (
            "seen only now in another section",
            vec![make_possible(other)],
            vec![StepOutcome::Done],
            first,
            Some(ChangedMeanwhile),
        ),
        ("created with it", vec![creation.clone()], vec![StepOutcome::Done], first, Some(NotSaved)),
        ("created without it", vec![creation.clone()], vec![failed_outcome()], first, None),
        (
            "of a section of what was created",
            vec![creation],
            vec![StepOutcome::Done],
            other,
            Some(ChangedMeanwhile),
        ),
    ] {
        let mismatches = with_run(&container, planned, &live, |run| {
            let ended = ended_state(run, &outcomes);
            let mut plan = ContainerPlan::default();
            plan.findings.steps.push(remaining.clone());
            run.find_mismatches(&plan, &ended)
        });
        let found: Vec<_> = mismatches.into_iter().map(|mismatch| mismatch.reason).collect();
        let is_readable =
            |reason: &MismatchReason| !matches!(reason, MismatchReason::Unreadable(_));
        let found: Vec<_> = found.into_iter().filter(is_readable).collect();
        assert_eq!(found, Vec::from_iter(expected), "{name}");
    }
}

/// A result that cannot be read is reported once: for the whole section if the section was not read.
#[test]
fn an_unreadable_result_is_reported_once() {
    let container = declared_shop();
    let live = live_container(&container, &live_before());
    let steps = reading(&container, &live, &[]).plan.findings.steps;
    let plan_without = |sections: &[&'static str]| {
        let mut live = live_container(&container, &live_after());
        for section in sections {
            live.sections.insert(section, LiveEntries::Unreadable(Cause::new("503")));
        }
        reading(&container, &live, &[]).plan
    };
    let plan_without_fields = || {
        reading(
            &container,
            &live_container(
                &container,
                &json!({"settings": {}, "variables": live_after()["variables"]}),
            ),
            &[],
        )
        .plan
    };
    let both_done = || vec![StepOutcome::Done, StepOutcome::Done];
    let (settings, variables) = ("acme/shop#settings", "acme/shop#variables");
    let mut archived = live.clone();
    if let Presence::Existing(_, facts) = &mut archived.presence {
        facts.is_archived = true;
    }
    let plan_when_archived = || reading(&container, &archived, &[]).plan;
    let archive = Step {
        address: container.address().section("archived"),
        effects: vec![Effect::revokes(Capability::Writable)],
        ..steps[0].clone()
    };
    let steps_with_archiving =
        || steps.iter().cloned().chain([archive.clone()]).collect::<Vec<_>>();
    for (name, planned, outcomes, new_plan, expected) in [
        ("all read", steps.clone(), both_done(), plan_without(&[]), vec![]),
        ("a list", steps.clone(), both_done(), plan_without(&["variables"]), vec![variables]),
        (
            "both",
            steps.clone(),
            both_done(),
            plan_without(&["settings", "variables"]),
            vec![settings, variables],
        ),
        ("a field", steps.clone(), both_done(), plan_without_fields(), vec![settings]),
        (
            "a field of a step that failed",
            steps.clone(),
            vec![StepOutcome::NotStarted, StepOutcome::Done],
            plan_without_fields(),
            vec![],
        ),
        (
            "closed by somebody else",
            steps.clone(),
            both_done(),
            plan_when_archived(),
            vec![settings, "acme/shop#variables/A@*"],
        ),
        (
            "closed by this run",
            steps_with_archiving(),
            vec![StepOutcome::Done, StepOutcome::Done, StepOutcome::Done],
            plan_when_archived(),
            vec!["acme/shop#archived"],
        ),
        (
            "not closed by this run",
            steps_with_archiving(),
            vec![StepOutcome::Done, StepOutcome::Done, StepOutcome::NotStarted],
            plan_when_archived(),
            vec![settings, "acme/shop#variables/A@*"],
        ),
    ] {
        let found = with_run(&container, planned, &live, |run| {
            let ended = ended_state(run, &outcomes);
            run.find_mismatches(&new_plan, &ended)
        });
        let unreadable = found.iter().filter(|m| matches!(m.reason, MismatchReason::Unreadable(_)));
        let found: Vec<_> = unreadable.map(|mismatch| mismatch.address.to_string()).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn an_unsaved_field_names_the_missing_release_tier_or_group() {
    let container = declared_shop();
    let live = live_container(&container, &live_before());
    let steps = reading(&container, &live, &[]).plan.findings.steps;
    let top_level = Container { path: "shop".into(), ..container.clone() };
    let jira = "prevent_merge_without_jira_issue";
    for (container, fields, expected) in [
        (&container, vec!["description"], None),
        (
            &container,
            vec!["approvals_before_merge"],
            Some("`approvals_before_merge` needs the premium tier"),
        ),
        (
            &container,
            vec![jira],
            Some("`prevent_merge_without_jira_issue` needs release 16.7 of the service or later"),
        ),
        (
            &container,
            vec!["only_allow_merge_if_all_status_checks_passed"],
            Some("`only_allow_merge_if_all_status_checks_passed` needs the ultimate tier"),
        ),
        (
            &container,
            vec!["shared_runners_enabled"],
            Some(
                "`shared_runners_setting` in the `settings` of a group above may override `shared_runners_enabled`",
            ),
        ),
        (&top_level, vec!["shared_runners_enabled"], None),
        (
            &container,
            vec!["approvals_before_merge", "description", "shared_runners_enabled"],
            Some(
                "`approvals_before_merge` needs the premium tier; `shared_runners_setting` in the `settings` of a group above may override `shared_runners_enabled`",
            ),
        ),
    ] {
        let names: Vec<_> = fields.into_iter().map(str::to_owned).collect();
        let found =
            with_run(container, steps.clone(), &live, |run| run.explain_unsaved(&steps[0], &names));
        assert_eq!(found.as_deref(), expected, "{names:?}");
    }
    // If the service has the needed release and tier, the text does not name them as a reason.
    let mut latest = live;
    latest.release = DetectedRelease::Known("18.9".parse().unwrap());
    if let Presence::Existing(_, facts) = &mut latest.presence {
        facts.tier = Tier::Ultimate;
    }
    let names = [jira, "approvals_before_merge"].map(str::to_owned);
    let found =
        with_run(&container, steps.clone(), &latest, |run| run.explain_unsaved(&steps[0], &names));
    assert_eq!(found, None);
}

/// The tier of the service is certain. The effect of a group above is only a guess.
#[test]
fn a_missing_tier_explains_an_unsaved_field_before_a_group_above_does() {
    let field = "merge_requests_author_approval";
    let sections = json!({"approvals": {field: true}});
    let container = crate::desired::testing::shop(&sections, crate::desired::Unlisted::Report);
    let live = live_container(&container, &json!({"approvals": {field: false}}));
    let steps = reading(&container, &live, &[]).plan.findings.steps;
    for (tier, expected) in
        [(Tier::Free, "needs the premium tier"), (Tier::Ultimate, "group above")]
    {
        let mut live = live.clone();
        if let Presence::Existing(_, facts) = &mut live.presence {
            facts.tier = tier;
        }
        let names = [field.to_owned()];
        let found = with_run(&container, steps.clone(), &live, |run| {
            run.explain_unsaved(&steps[0], &names)
        });
        assert!(found.as_deref().unwrap_or_default().contains(expected), "{found:?}");
    }
}

/// If no further read is possible, only the responses to writes count.
#[test]
fn answers_show_unsaved_fields_without_a_read() {
    let container = declared_shop();
    let live = live_container(&container, &live_before());
    let steps = reading(&container, &live, &[]).plan.findings.steps;
    for (stale_indexes, expected) in [(&[][..], 2), (&[0], 1), (&[0, 1], 0)] {
        let found = with_run(&container, steps.clone(), &live, |run| {
            for index in stale_indexes {
                run.cache.borrow_mut().mark_stale(&steps[*index], &container);
            }
            run.find_unsaved_fields(&ended_state(run, &[StepOutcome::Done, StepOutcome::Done]))
        });
        assert_eq!(found.len(), expected, "{stale_indexes:?}");
        assert!(found.iter().all(|mismatch| mismatch.reason == MismatchReason::NotSaved));
        let found = with_run(&container, steps.clone(), &live, |run| {
            run.find_unsaved_fields(&ended_state(run, &[]))
        });
        assert_eq!(found, [], "what was not sent is no part of it");
    }
}

/// A missing tier explains only the difference of a step that was sent.
#[test]
fn only_an_unsaved_field_has_an_explanation() {
    let container = declared_shop();
    let live = live_container(&container, &live_before());
    let step = reading(&container, &live, &[]).plan.findings.steps.remove(0);
    let field = "approvals_before_merge";
    let change = FieldChange::new(field, Shown::Absent, Shown::Value(json!(2)), None);
    let step = Step { changes: vec![change], ..step };
    for (outcomes, is_explained) in [(&[StepOutcome::Done][..], true), (&[], false)] {
        let help = with_run(&container, vec![step.clone()], &live, |run| {
            run.find_mismatch(&step, &ended_state(run, outcomes)).unwrap().help
        });
        let expected = is_explained.then(|| format!("`{field}` needs the premium tier"));
        assert_eq!(help, expected);
    }
}
