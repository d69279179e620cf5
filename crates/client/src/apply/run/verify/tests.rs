//! What does not match after a run, from what was made up to be there.

use futures_util::FutureExt;
use serde_json::json;

use super::*;
use crate::{
    api::ApiError,
    apply::{
        StepOutcome,
        run::{
            progress::StepProgress,
            testing::{after, before, declared, reading, with_run},
        },
    },
    desired::Container,
    diff::{Action, FieldChange, Shown},
    kind::{Capability, Effect},
    live::{LiveEntries, Presence, testing::live_container},
    operation::HOOK_CREATE,
    release::DetectedRelease,
};

/// How the steps of a run ended, with nothing that does not match.
fn ends(run: &ContainerRun<'_>, outcomes: &[StepOutcome]) -> RunState<'static> {
    let mut ended = RunState { progress: StepProgress::new(run.steps), ..RunState::default() };
    for (step, outcome) in run.steps.iter().zip(outcomes) {
        run.end_step(&mut ended, step, outcome.clone());
    }
    ended
}

/// After an error that ends the run, only what was heard from the writes themselves counts.
#[test]
fn nothing_is_read_after_an_error_that_ends_the_run() {
    let container = declared();
    let live = live_container(&container, &before());
    let steps = reading(&container, &live, &[]).plan.findings.steps;
    with_run(&container, steps, &live, |run| {
        let mut ended = ends(run, &[StepOutcome::Done, StepOutcome::Done]);
        ended.progress.has_sent = true;
        run.steps.iter().for_each(|step| run.cache.borrow_mut().mark_stale(step, &container));
        ended.error = Some(ApiError::answered(HOOK_CREATE.row(), 401));
        run.verify(&mut ended).now_or_never().expect("nothing is read");
        assert_eq!(ended.mismatches, []);
    });
}

/// What differs afterwards: by whom depends on how the step there ended.
#[test]
fn a_remaining_difference_is_reported_unless_its_step_failed() {
    use MismatchReason::{ChangedMeanwhile, NotPlanned, NotSaved};
    let container = declared();
    let live = live_container(&container, &before());
    let steps = reading(&container, &live, &[]).plan.findings.steps;
    let [first, other] = &steps[..] else { panic!("{steps:?}") };
    let failed = || StepOutcome::Failed(Cause::new("refused"));
    let possible = |step: &Step| Step { possible: Some("unless it is so"), ..step.clone() };
    let archive = Step {
        address: container.address().section("archived"),
        effects: vec![Effect::takes(Capability::Writable)],
        ..first.clone()
    };
    let creation = Step { address: container.address(), action: Action::Create, ..first.clone() };
    let mut beside = other.clone();
    beside.address = container.address().section("variables").entry("B@*");
    for (name, planned, outcomes, left, expected) in [
        ("not saved", vec![first.clone()], vec![StepOutcome::Done], first, Some(NotSaved)),
        ("was so already", vec![first.clone()], vec![StepOutcome::Already], first, Some(NotSaved)),
        ("failed", vec![first.clone()], vec![failed()], first, None),
        ("not its turn", vec![archive.clone()], vec![], &archive, None),
        ("of another", vec![first.clone()], vec![StepOutcome::Done], other, Some(ChangedMeanwhile)),
        (
            "seen only now",
            vec![possible(other)],
            vec![StepOutcome::Done],
            &beside,
            Some(NotPlanned),
        ),
        (
            "seen only now in another section",
            vec![possible(other)],
            vec![StepOutcome::Done],
            first,
            Some(ChangedMeanwhile),
        ),
        ("created with it", vec![creation.clone()], vec![StepOutcome::Done], first, Some(NotSaved)),
        ("created without it", vec![creation.clone()], vec![failed()], first, None),
        (
            "of a section of what was created",
            vec![creation],
            vec![StepOutcome::Done],
            other,
            Some(ChangedMeanwhile),
        ),
    ] {
        let found = with_run(&container, planned, &live, |run| {
            let ended = ends(run, &outcomes);
            let mut plan = ContainerPlan::default();
            plan.findings.steps.push(left.clone());
            run.find_mismatches(&plan, &ended)
        });
        let found: Vec<_> = found.into_iter().map(|mismatch| mismatch.reason).collect();
        let seen = |reason: &MismatchReason| !matches!(reason, MismatchReason::Unreadable(_));
        let found: Vec<_> = found.into_iter().filter(seen).collect();
        assert_eq!(found, Vec::from_iter(expected), "{name}");
    }
}

/// What was done and cannot be seen is not known to match, but once: where a section was not read,
/// that is said of it as a whole.
#[test]
fn an_unreadable_result_is_reported_once() {
    let container = declared();
    let live = live_container(&container, &before());
    let steps = reading(&container, &live, &[]).plan.findings.steps;
    let unread = |sections: &[&'static str]| {
        let mut live = live_container(&container, &after());
        for section in sections {
            live.sections.insert(section, LiveEntries::Unreadable(Cause::new("503")));
        }
        reading(&container, &live, &[]).plan
    };
    let bare = || {
        reading(
            &container,
            &live_container(
                &container,
                &json!({"settings": {}, "variables": after()["variables"]}),
            ),
            &[],
        )
        .plan
    };
    let done = || vec![StepOutcome::Done, StepOutcome::Done];
    let (settings, variables) = ("acme/shop#settings", "acme/shop#variables");
    let mut archived = live.clone();
    if let Presence::Here(_, facts) = &mut archived.presence {
        facts.is_archived = true;
    }
    let archived = || reading(&container, &archived, &[]).plan;
    let archive = Step {
        address: container.address().section("archived"),
        effects: vec![Effect::takes(Capability::Writable)],
        ..steps[0].clone()
    };
    let closing = || steps.iter().cloned().chain([archive.clone()]).collect::<Vec<_>>();
    for (name, planned, outcomes, left, expected) in [
        ("all read", steps.clone(), done(), unread(&[]), vec![]),
        ("a list", steps.clone(), done(), unread(&["variables"]), vec![variables]),
        (
            "both",
            steps.clone(),
            done(),
            unread(&["settings", "variables"]),
            vec![settings, variables],
        ),
        ("a field", steps.clone(), done(), bare(), vec![settings]),
        (
            "a field of a step that failed",
            steps.clone(),
            vec![StepOutcome::NotStarted, StepOutcome::Done],
            bare(),
            vec![],
        ),
        (
            "closed by somebody else",
            steps.clone(),
            done(),
            archived(),
            vec![settings, "acme/shop#variables/A@*"],
        ),
        (
            "closed by this run",
            closing(),
            vec![StepOutcome::Done, StepOutcome::Done, StepOutcome::Done],
            archived(),
            vec!["acme/shop#archived"],
        ),
        (
            "not closed by this run",
            closing(),
            vec![StepOutcome::Done, StepOutcome::Done, StepOutcome::NotStarted],
            archived(),
            vec![settings, "acme/shop#variables/A@*"],
        ),
    ] {
        let found = with_run(&container, planned, &live, |run| {
            let ended = ends(run, &outcomes);
            run.find_mismatches(&left, &ended)
        });
        let unreadable = found.iter().filter(|m| matches!(m.reason, MismatchReason::Unreadable(_)));
        let found: Vec<_> = unreadable.map(|mismatch| mismatch.address.to_string()).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn an_unsaved_field_names_the_missing_release_tier_or_group() {
    let container = declared();
    let live = live_container(&container, &before());
    let steps = reading(&container, &live, &[]).plan.findings.steps;
    let top = Container { path: "shop".into(), ..container.clone() };
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
        (&top, vec!["shared_runners_enabled"], None),
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
    // What the service is known to have is no reason.
    let mut newer = live;
    newer.release = DetectedRelease::Known("18.9".parse().unwrap());
    if let Presence::Here(_, facts) = &mut newer.presence {
        facts.tier = Tier::Ultimate;
    }
    let names = [jira, "approvals_before_merge"].map(str::to_owned);
    let found =
        with_run(&container, steps.clone(), &newer, |run| run.explain_unsaved(&steps[0], &names));
    assert_eq!(found, None);
}

/// The tier is known; what a group decides is a guess.
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
        if let Presence::Here(_, facts) = &mut live.presence {
            facts.tier = tier;
        }
        let names = [field.to_owned()];
        let found = with_run(&container, steps.clone(), &live, |run| {
            run.explain_unsaved(&steps[0], &names)
        });
        assert!(found.as_deref().unwrap_or_default().contains(expected), "{found:?}");
    }
}

/// Where nothing can be read any more, only the answers to the writes count.
#[test]
fn answers_show_unsaved_fields_without_a_read() {
    let container = declared();
    let live = live_container(&container, &before());
    let steps = reading(&container, &live, &[]).plan.findings.steps;
    for (doubted, expected) in [(&[][..], 2), (&[0], 1), (&[0, 1], 0)] {
        let found = with_run(&container, steps.clone(), &live, |run| {
            for at in doubted {
                run.cache.borrow_mut().mark_stale(&steps[*at], &container);
            }
            run.unsaved_in_answers(&ends(run, &[StepOutcome::Done, StepOutcome::Done]))
        });
        assert_eq!(found.len(), expected, "{doubted:?}");
        assert!(found.iter().all(|mismatch| mismatch.reason == MismatchReason::NotSaved));
        let found = with_run(&container, steps.clone(), &live, |run| {
            run.unsaved_in_answers(&ends(run, &[]))
        });
        assert_eq!(found, [], "what was not sent is no part of it");
    }
}

/// What the service may lack explains only a difference that its step should have removed.
#[test]
fn only_an_unsaved_field_has_an_explanation() {
    let container = declared();
    let live = live_container(&container, &before());
    let step = reading(&container, &live, &[]).plan.findings.steps.remove(0);
    let field = "approvals_before_merge";
    let change = FieldChange::new(field, Shown::Absent, Shown::Value(json!(2)), None);
    let step = Step { changes: vec![change], ..step };
    for (outcomes, is_explained) in [(&[StepOutcome::Done][..], true), (&[], false)] {
        let help = with_run(&container, vec![step.clone()], &live, |run| {
            run.find_mismatch(&step, &ends(run, outcomes)).unwrap().help
        });
        let expected = is_explained.then(|| format!("`{field}` needs the premium tier"));
        assert_eq!(help, expected);
    }
}
