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
        let mut state = ended_state(run, &[StepOutcome::Done, StepOutcome::Done]);
        state.progress.has_sent = true;
        run.steps.iter().for_each(|step| run.cache.borrow_mut().mark_stale(step, &container));
        state.error = Some(ApiError::with_status(HOOK_CREATE.row(), 401));
        run.verify(&mut state).now_or_never().expect("nothing is read");
        assert_eq!(state.mismatches, []);
    });
}

/// The reason for a remaining difference depends on the outcome of its step.
#[test]
fn a_remaining_difference_is_reported_unless_its_step_failed() {
    use MismatchReason::{ChangedMeanwhile, NotPlanned, NotSaved};
    let container = declared_shop();
    let live = live_container(&container, &live_before());
    let steps = reading(&container, &live, &[]).plan.findings.steps;
    let [settings_step, variable_step] = &steps[..] else { panic!("{steps:?}") };
    let failed_outcome = || StepOutcome::Failed(Cause::new("refused"));
    let make_possible = |step: &Step| Step { possible: Some("unless it is so"), ..step.clone() };
    let archive_step = Step {
        address: container.address().with_section("archived"),
        effects: vec![Effect::revokes(Capability::Writable)],
        ..settings_step.clone()
    };
    let creation_step =
        Step { address: container.address(), action: Action::Create, ..settings_step.clone() };
    let mut new_variable_step = variable_step.clone();
    new_variable_step.address = container.address().with_section("variables").with_entry("B@*");
    for (name, planned_steps, outcomes, remaining_step, expected) in [
        (
            "not saved",
            vec![settings_step.clone()],
            vec![StepOutcome::Done],
            settings_step,
            Some(NotSaved),
        ),
        (
            "was so already",
            vec![settings_step.clone()],
            vec![StepOutcome::Already],
            settings_step,
            Some(NotSaved),
        ),
        ("failed", vec![settings_step.clone()], vec![failed_outcome()], settings_step, None),
        ("not its turn", vec![archive_step.clone()], vec![], &archive_step, None),
        (
            "of another",
            vec![settings_step.clone()],
            vec![StepOutcome::Done],
            variable_step,
            Some(ChangedMeanwhile),
        ),
        (
            "seen only now",
            vec![make_possible(variable_step)],
            vec![StepOutcome::Done],
            &new_variable_step,
            Some(NotPlanned),
        ),
        (
            "seen only now in another section",
            vec![make_possible(variable_step)],
            vec![StepOutcome::Done],
            settings_step,
            Some(ChangedMeanwhile),
        ),
        (
            "created with it",
            vec![creation_step.clone()],
            vec![StepOutcome::Done],
            settings_step,
            Some(NotSaved),
        ),
        (
            "created without it",
            vec![creation_step.clone()],
            vec![failed_outcome()],
            settings_step,
            None,
        ),
        (
            "of a section of what was created",
            vec![creation_step],
            vec![StepOutcome::Done],
            variable_step,
            Some(ChangedMeanwhile),
        ),
    ] {
        let mismatches = with_run(&container, planned_steps, &live, |run| {
            let state = ended_state(run, &outcomes);
            let mut plan = ContainerPlan::default();
            plan.findings.steps.push(remaining_step.clone());
            run.find_mismatches(&plan, &state)
        });
        let reasons: Vec<_> = mismatches.into_iter().map(|mismatch| mismatch.reason).collect();
        let is_readable =
            |reason: &MismatchReason| !matches!(reason, MismatchReason::Unreadable(_));
        let readable_reasons: Vec<_> = reasons.into_iter().filter(is_readable).collect();
        assert_eq!(readable_reasons, Vec::from_iter(expected), "{name}");
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
    let mut archived_live = live.clone();
    if let Presence::Existing(_, facts) = &mut archived_live.presence {
        facts.is_archived = true;
    }
    let plan_when_archived = || reading(&container, &archived_live, &[]).plan;
    let archive_step = Step {
        address: container.address().with_section("archived"),
        effects: vec![Effect::revokes(Capability::Writable)],
        ..steps[0].clone()
    };
    let steps_with_archiving =
        || steps.iter().cloned().chain([archive_step.clone()]).collect::<Vec<_>>();
    for (name, planned_steps, outcomes, new_plan, expected) in [
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
        let mismatches = with_run(&container, planned_steps, &live, |run| {
            let state = ended_state(run, &outcomes);
            run.find_mismatches(&new_plan, &state)
        });
        let unreadable =
            mismatches.iter().filter(|m| matches!(m.reason, MismatchReason::Unreadable(_)));
        let unreadable_addresses: Vec<_> =
            unreadable.map(|mismatch| mismatch.address.to_string()).collect();
        assert_eq!(unreadable_addresses, expected, "{name}");
    }
}

#[test]
fn an_unsaved_field_names_the_missing_release_tier_or_group() {
    let container = declared_shop();
    let live = live_container(&container, &live_before());
    let steps = reading(&container, &live, &[]).plan.findings.steps;
    let top_level_container = Container { path: "shop".into(), ..container.clone() };
    let jira_field = "prevent_merge_without_jira_issue";
    for (container, fields, expected) in [
        (&container, vec!["description"], None),
        (
            &container,
            vec!["approvals_before_merge"],
            Some("`approvals_before_merge` needs the premium tier"),
        ),
        (
            &container,
            vec![jira_field],
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
        (&top_level_container, vec!["shared_runners_enabled"], None),
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
    let mut latest_live = live;
    latest_live.read_release = DetectedRelease::Known("18.9".parse().unwrap());
    if let Presence::Existing(_, facts) = &mut latest_live.presence {
        facts.tier = Tier::Ultimate;
    }
    let names = [jira_field, "approvals_before_merge"].map(str::to_owned);
    let found = with_run(&container, steps.clone(), &latest_live, |run| {
        run.explain_unsaved(&steps[0], &names)
    });
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
        let actual = with_run(&container, steps.clone(), &live, |run| {
            run.explain_unsaved(&steps[0], &names)
        });
        assert!(actual.as_deref().unwrap_or_default().contains(expected), "{actual:?}");
    }
}

/// If no further read is possible, only the responses to writes count.
#[test]
fn answers_show_unsaved_fields_without_a_read() {
    let container = declared_shop();
    let live = live_container(&container, &live_before());
    let steps = reading(&container, &live, &[]).plan.findings.steps;
    for (stale_indexes, expected) in [(&[][..], 2), (&[0], 1), (&[0, 1], 0)] {
        let actual = with_run(&container, steps.clone(), &live, |run| {
            for index in stale_indexes {
                run.cache.borrow_mut().mark_stale(&steps[*index], &container);
            }
            run.find_unsaved_fields(&ended_state(run, &[StepOutcome::Done, StepOutcome::Done]))
        });
        assert_eq!(actual.len(), expected, "{stale_indexes:?}");
        assert!(actual.iter().all(|mismatch| mismatch.reason == MismatchReason::NotSaved));
        let actual = with_run(&container, steps.clone(), &live, |run| {
            run.find_unsaved_fields(&ended_state(run, &[]))
        });
        assert_eq!(actual, [], "what was not sent is no part of it");
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
