//! Tests of approval and of acknowledgements.

use jiff::civil::{Date, date};

use super::*;
use crate::{
    desired::{Acknowledgement, testing},
    diagnostic::Severity,
    diff::Edge,
    field::Scope,
    kind::{Capability, Effect},
};

const TODAY: Date = date(2030, 1, 15);

fn address(index: usize) -> Address {
    Address::container(format!("acme/p{index:03}").into())
}

fn problem(index: usize) -> Problem {
    Problem {
        address: address(index),
        code: "missing-project",
        message: "it does not exist".into(),
        help: None,
        origin: origin(1),
    }
}

fn refusal(index: usize) -> GuardRefusal {
    let section = address(index).with_section("hooks");
    GuardRefusal::new(Guard::Removals, &section, "too many".into(), 6, &origin(1))
}

fn unread_section(index: usize) -> Incomplete {
    let reason = Cause::new("answered 403");
    Incomplete { address: address(index).with_section("variables"), reason, origin: None }
}

/// A plan with one step in each of `projects` projects.
fn plan(projects: usize) -> Plan {
    let step = |index| {
        let address = address(index).with_section("settings");
        Step::new(Scope::Project, address, Action::Update, origin(1), Vec::new(), Vec::new())
    };
    let findings = Findings { steps: (0..projects).map(step).collect(), ..Findings::default() };
    Plan { findings, projects, ..Plan::default() }
}

/// The number of steps that may run, and the skipped paths with their numbers of steps. The error
/// is the reason why nothing may run.
fn approve_plan(
    plan: &Plan,
    all_or_nothing: bool,
) -> Result<(usize, Vec<(String, usize)>), String> {
    let (approved, skipped) = plan
        .approve(ApprovalPolicy { all_or_nothing, ..ApprovalPolicy::default() })
        .map_err(|BlockedRun(message)| message)?;
    let skipped_paths = skipped.into_iter().map(|skip| (skip.address.to_string(), skip.steps));
    Ok((approved.steps().count(), skipped_paths.collect()))
}

#[test]
fn broken_containers_are_skipped_and_too_many_stop_the_run() {
    // The number of projects, the number of broken projects, and true if the other projects may
    // run.
    for (container_count, broken_count, is_applied) in [
        (1, 0, true),
        (1, 1, true),
        (4, 3, true),
        (5, 4, false),
        (79, 4, false),
        (80, 4, true),
        (100, 5, true),
        (100, 6, false),
        (1000, 50, true),
        (1000, 51, false),
    ] {
        let mut plan = plan(container_count);
        plan.problems.extend((0..broken_count).map(problem));
        match approve_plan(&plan, false) {
            Ok((steps, left_out)) => {
                assert!(is_applied, "{broken_count} of {container_count}");
                assert_eq!((steps, left_out.len()), (container_count - broken_count, broken_count));
            }
            Err(message) => {
                assert!(!is_applied, "{broken_count} of {container_count}: {message}");
                assert!(
                    message.contains(&format!("of {container_count} ")) && message.contains("5 %"),
                    "{message}"
                );
            }
        }
        assert_eq!(
            approve_plan(&plan, true).is_ok(),
            broken_count == 0,
            "{broken_count} of {container_count}"
        );
    }
}

/// Only the withheld section is skipped. But if a step archives the project, the whole project is
/// skipped, because the section could not be changed after that step.
#[test]
fn a_withheld_section_is_skipped_alone_unless_the_project_is_archived() {
    use crate::cause::Withheld::{Refused, SwitchedOff, Tier};
    for withheld in [Tier, SwitchedOff, Refused] {
        let mut plan = plan(5);
        for index in 0..5 {
            let mut unread = unread_section(index);
            unread.reason.withheld = Some(withheld);
            plan.incomplete.push(unread);
        }
        assert_eq!(approve_plan(&plan, false), Ok((5, Vec::new())), "{withheld:?}");
        plan.findings.steps[0].effects.push(Effect::revokes(Capability::Writable));
        let left_out = vec![("acme/p000".to_owned(), 1)];
        assert_eq!(approve_plan(&plan, false), Ok((4, left_out)), "{withheld:?}");
        // Only a withheld section is skipped alone, not a withheld project or entry.
        plan.incomplete[1].address = address(1);
        plan.incomplete[2].address.entry = Some("A@*".into());
        assert_eq!(approve_plan(&plan, false).map(|(steps, _)| steps), Ok(2), "{withheld:?}");
    }
}

#[test]
fn groups_count_like_projects() {
    let mut plan = Plan { projects: 40, groups: 40, ..plan(40) };
    plan.problems.extend((0..4).map(problem));
    assert!(approve_plan(&plan, false).is_ok());
    plan.groups = 39;
    assert!(approve_plan(&plan, false).is_err());
}

#[test]
fn a_container_with_any_fault_is_skipped_and_counted_once() {
    let mut plan = plan(4);
    plan.problems.push(problem(0));
    plan.refusals.push(refusal(1));
    plan.incomplete.push(unread_section(2));
    let paths = [0, 1, 2].map(|index| (address(index).to_string(), 1));
    assert_eq!(approve_plan(&plan, false), Ok((1, paths.to_vec())));
    plan.refusals.push(refusal(0));
    plan.incomplete.push(unread_section(0));
    assert_eq!(approve_plan(&plan, false), Ok((1, paths.to_vec())), "still three of four");
    let message = approve_plan(&plan, true).unwrap_err();
    assert!(message.contains("--all-or-nothing"), "{message}");
}

#[test]
fn a_skipped_container_loses_all_its_steps() {
    let mut plan = plan(2);
    let step = plan.steps[1].clone();
    plan.steps.push(Step { address: address(1).with_section("hooks").with_entry("ci"), ..step });
    plan.problems.push(problem(1));
    assert_eq!(approve_plan(&plan, false), Ok((1, vec![("acme/p001".to_owned(), 2)])));
}

#[test]
fn containers_that_depend_on_a_skipped_one_are_skipped() {
    let mut plan = plan(100);
    let mut add_dependency = |project: usize, other_index: usize| {
        let address = plan.findings.steps[other_index].address.clone();
        plan.findings.steps[project].after = vec![Edge { address, reason: "it must exist" }];
    };
    add_dependency(2, 1);
    add_dependency(3, 2);
    add_dependency(5, 4);
    plan.problems.push(problem(1));
    let paths = [1, 2, 3].map(|index| (address(index).to_string(), 1));
    assert_eq!(approve_plan(&plan, false), Ok((97, paths.to_vec())));
}

#[test]
fn a_refusal_of_the_whole_run_stops_it() {
    let mut plan = plan(1000);
    let everything = Address::container("**".into());
    plan.refusals.push(GuardRefusal::new(
        Guard::Removals,
        &everything,
        "too many".into(),
        51,
        &origin(1),
    ));
    assert!(approve_plan(&plan, false).unwrap_err().contains("the whole run"));
    let acks = [parse_ack("removals:**")];
    assert_eq!(plan.acknowledge(&acks, &Moves::default(), TODAY), []);
    assert_eq!(approve_plan(&plan, false), Ok((1000, vec![])));
}

fn parse_ack(text: &str) -> Acknowledgement {
    Acknowledgement::parse(text).unwrap()
}

/// Applies `acknowledgements` to refusals of three projects. Returns the numbers of remaining and of
/// acknowledged refusals, and the warnings.
fn apply_acks(acknowledgements: &[Acknowledgement]) -> (usize, usize, Vec<String>) {
    let mut plan = plan(3);
    plan.refusals.extend((0..3).map(refusal));
    let warnings =
        plan.acknowledge(acknowledgements, &Moves::default(), TODAY).into_iter().map(|warning| {
            assert_eq!((warning.severity, warning.code), (Severity::Warning, "acknowledgement"));
            warning.message
        });
    let warnings = warnings.collect();
    (plan.refusals.len(), plan.acknowledged.len(), warnings)
}

#[test]
fn an_acknowledgement_covers_refusals_that_its_glob_matches() {
    for (ack_text, refusal_count) in [
        ("removals:acme/p000#hooks", 2),
        ("removals:acme/p000", 2),
        ("removals:acme/*#hooks", 0),
        ("removals:acme/p00[12]#hooks", 1),
        ("removals:**#hooks", 0),
        ("removals:**", 0),
    ] {
        assert_eq!(
            apply_acks(&[parse_ack(ack_text)]),
            (refusal_count, 3 - refusal_count, vec![]),
            "{ack_text}"
        );
    }
}

/// A branch cannot gain the acknowledgements of other projects by a rename.
#[test]
fn a_glob_acknowledges_a_moved_project_only_if_it_matches_both_paths() {
    let mut container =
        testing::container(Scope::Project, "acme/p000", &Json::Null, Unlisted::Report);
    container.lifecycle.former_paths = vec![testing::former_path("prod/web")];
    let moves = Moves::from_containers(&[container]);
    for (ack_text, is_acknowledged) in [
        ("removals:acme/**#hooks", false),
        ("removals:acme/p000#hooks", true),
        ("removals:ACME/p000", true),
        ("removals:{acme,prod}/*#hooks", true),
        ("removals:prod/*#hooks", false),
        ("removals:**", true),
    ] {
        let mut plan = plan(1);
        plan.refusals.push(refusal(0));
        let warnings = plan.acknowledge(&[parse_ack(ack_text)], &moves, TODAY);
        assert_eq!(plan.refusals.is_empty(), is_acknowledged, "{ack_text}");
        assert_eq!(warnings.is_empty(), is_acknowledged, "{ack_text}");
        let names_former_path =
            warnings.iter().any(|warning| warning.message.contains("`prod/web`, the former"));
        assert_eq!(names_former_path, ack_text.starts_with("removals:acme/**"), "{warnings:?}");
    }
}

/// A rule has no former paths.
#[test]
fn a_wider_glob_acknowledges_a_rule_below_a_renamed_group() {
    let mut group = testing::container(Scope::Group, "acme", &Json::Null, Unlisted::Report);
    group.lifecycle.former_paths = vec![testing::former_path("prod")];
    let moves = Moves::from_containers(&[group]);
    for (path, guard, is_acknowledged) in [
        ("acme/web/**", Guard::Reach, true),
        ("acme/web", Guard::Visibility, false),
        ("other/web", Guard::Visibility, false),
    ] {
        let mut plan = plan(1);
        let address = Address::container(path.into());
        plan.refusals.push(GuardRefusal::new(guard, &address, "too many".into(), 6, &origin(1)));
        let acks = [parse_ack("reach:acme/**"), parse_ack("visibility:acme/**")];
        plan.acknowledge(&acks, &moves, TODAY);
        assert_eq!(plan.refusals.is_empty(), is_acknowledged, "{path}");
    }
}

#[test]
fn a_deletion_is_acknowledged_by_its_own_path_only() {
    for (ack_text, is_acknowledged) in [
        ("deletion:acme/p000", true),
        ("deletion:ACME/p000", true),
        ("deletion:acme/p001", false),
        ("deletion:acme/*", false),
        ("deletion:**", false),
        ("removals:acme/p000", false),
    ] {
        let mut plan = plan(1);
        let reason = "would delete it".to_owned();
        plan.refusals.push(GuardRefusal::new(Guard::Deletion, &address(0), reason, 1, &origin(1)));
        plan.acknowledge(&[parse_ack(ack_text)], &Moves::default(), TODAY);
        assert_eq!(plan.refusals.is_empty(), is_acknowledged, "{ack_text}");
    }
}

#[test]
fn an_unused_acknowledgement_is_a_warning() {
    for text in ["removals:acme/p000#members", "visibility:acme/p000#hooks", "removals:other/**"] {
        let warning = format!("`{text}` acknowledges nothing that this run refuses");
        assert_eq!(apply_acks(&[parse_ack(text)]), (3, 0, vec![warning]), "{text}");
    }
    let mut plan = plan(3);
    plan.refusals.extend((0..3).map(refusal));
    let ack = parse_ack("removals:acme/p001/hooks");
    let warnings = plan.acknowledge(&[ack], &Moves::default(), TODAY);
    assert_eq!(warnings[0].help.as_deref(), Some("did you mean `removals:acme/p001#hooks`?"));
    let ack = parse_ack("removals:acme/p001#hooks;visibility:acme/p001");
    let warnings = plan.acknowledge(&[ack], &Moves::default(), TODAY);
    let help = "UNDRIFT_ACK separates acknowledgements by commas: `removals:acme/p001#hooks,visibility:acme/p001`";
    assert_eq!(warnings[0].help.as_deref(), Some(help));
}

#[test]
fn an_acknowledgement_has_a_maximum_number_and_an_expiry_date() {
    let ack = parse_ack("removals:acme/p000");
    let limited_ack =
        |max_objects| Acknowledgement { max_objects: Some(max_objects), ..ack.clone() };
    assert_eq!(apply_acks(&[limited_ack(6)]), (2, 1, vec![]));
    let exceeded =
        "the acknowledgement of `removals:acme/p000` allows at most 5, and `acme/p000#hooks` has 6";
    assert_eq!(apply_acks(&[limited_ack(5)]), (3, 0, vec![exceeded.to_owned()]));
    let expiring_ack = |day| Acknowledgement { until: Some(day), ..ack.clone() };
    assert_eq!(apply_acks(&[expiring_ack(TODAY)]), (2, 1, vec![]), "that day included");
    let expired = [
        expiring_ack(date(2030, 1, 14)),
        Acknowledgement {
            selector: parse_ack("removals:x").selector,
            ..expiring_ack(date(2030, 1, 14))
        },
    ];
    assert_eq!(apply_acks(&expired), (3, 0, vec![]), "the check of the manifests warns of it");
    // One valid acknowledgement is enough.
    assert_eq!(apply_acks(&[limited_ack(5), ack.clone()]), (2, 1, vec![exceeded.to_owned()]));
    // The number is the sum for all matching refusals. A refusal of the whole run does not count again.
    let glob = |max| Acknowledgement { max_objects: Some(max), ..parse_ack("removals:acme/**") };
    assert_eq!(apply_acks(&[glob(18)]), (0, 3, vec![]));
    let exceeded = "the acknowledgement of `removals:acme/**` allows at most 17, and the 3 refusals that it matches have 18 together";
    assert_eq!(apply_acks(&[glob(17)]), (3, 0, vec![exceeded.to_owned()]));
    // A refusal that another acknowledgement names does not count.
    let exact_ack = parse_ack("removals:acme/p000#hooks");
    assert_eq!(apply_acks(&[glob(12), exact_ack.clone()]), (0, 3, vec![]));
    let limited_exact_ack = Acknowledgement { max_objects: Some(5), ..exact_ack };
    assert_eq!(apply_acks(&[glob(12), limited_exact_ack]).0, 1);
    let mut plan = plan(3);
    let everything = Address::container("**".into());
    let whole_run_refusal =
        GuardRefusal::new(Guard::Removals, &everything, "too many".into(), 18, &origin(1));
    plan.refusals.extend((0..3).map(refusal).chain([whole_run_refusal]));
    let run_ack = Acknowledgement { max_objects: Some(18), ..parse_ack("removals:**") };
    assert_eq!(plan.acknowledge(&[run_ack], &Moves::default(), TODAY), []);
    assert!(plan.refusals.is_empty());
}

#[test]
fn only_a_glob_for_everything_acknowledges_a_refusal_of_the_whole_run() {
    for (ack_text, is_acknowledged) in
        [("removals:**", true), ("removals:*", false), ("removals:acme/**", false)]
    {
        let mut plan = Plan::default();
        let everything = Address::container("**".into());
        let refusal =
            GuardRefusal::new(Guard::Removals, &everything, "too many".into(), 51, &origin(1));
        plan.refusals.push(refusal);
        plan.acknowledge(&[parse_ack(ack_text)], &Moves::default(), TODAY);
        assert_eq!(plan.refusals.is_empty(), is_acknowledged, "{ack_text}");
    }
}

#[test]
fn an_acknowledgement_keeps_its_origin_and_applies_to_a_new_plan() {
    let mut plan = plan(1);
    plan.refusals.push(refusal(0));
    let reason = Some("the old hooks go".to_owned());
    let declared_ack = Acknowledgement {
        reason: reason.clone(),
        origin: Some(origin(8)),
        ..parse_ack("removals:**")
    };
    plan.acknowledge(&[declared_ack], &Moves::default(), TODAY);
    let acknowledged = &plan.acknowledged[0];
    assert_eq!((&acknowledged.reason, &acknowledged.by), (&reason, &Some(origin(8))));
    let (approved, _) = plan.approve(ApprovalPolicy::default()).unwrap();
    assert!(approved.acknowledges(&refusal(0)));
    assert!(
        !approved.acknowledges(&GuardRefusal { objects: 7, ..refusal(0) }),
        "one more than said"
    );
    assert!(!approved.acknowledges(&refusal(1)));
}
