//! Tests of limits, and of containers that only rules include.

use std::num::NonZeroUsize;

use super::*;
use crate::{
    desired::{ExclusionReason, MatchedContainer, Roster, testing},
    diff::Edge,
};

/// A plan of one declared project and of `container_count` projects that a rule includes. The
/// declared project and `changed_count` of the included projects change.
fn plan_included_projects(container_count: usize, changed_count: usize, extent: &Extent) -> Plan {
    let mut plan = Plan::default();
    for i in 0..=container_count {
        let path = format!("acme/p{i:03}");
        let sections = json!({"settings": {"merge_method": "ff"}});
        let mut declared = testing::container(Scope::Project, &path, &sections, Unlisted::Report);
        declared.including_glob = (i > 0).then(|| "acme/**".into());
        let method = if i <= changed_count { "merge" } else { "ff" };
        let live = live_container(&declared, &json!({"settings": {"merge_method": method}}));
        plan.add(&declared, plan_container(&declared, &live, &settings(&[])), live);
    }
    plan.finish(extent)
}

#[test]
fn a_rule_that_exceeds_its_reach_is_refused() {
    let refusal_reason = |container_count: usize, changed_count: usize, reach: GuardLimits| {
        let plan = plan_included_projects(
            container_count,
            changed_count,
            &Extent { reach_limits: reach, ..Extent::default() },
        );
        assert_eq!(plan.counts().projects, changed_count + 1);
        plan.refusals.first().map(|refusal| refusal.reason.clone())
    };
    for (container_count, changed_count, is_refused) in [
        (5, 5, false),
        (6, 6, true),
        (59, 6, true),
        (60, 6, false),
        (600, 50, false),
        (600, 51, true),
    ] {
        let reason = refusal_reason(container_count, changed_count, GuardLimits::REACH);
        assert_eq!(
            reason.is_some(),
            is_refused,
            "{changed_count} of {container_count}: {reason:?}"
        );
    }
    assert_eq!(
        refusal_reason(20, 10, GuardLimits::REACH).unwrap(),
        "would change 10 of 20 undeclared groups or projects that the rule includes; the limit is 10 %"
    );
    assert!(
        refusal_reason(20, 10, GuardLimits { count: 9, share: 1.0 })
            .unwrap()
            .ends_with("limit is 9")
    );
    assert!(refusal_reason(20, 10, GuardLimits { count: 10, share: 1.0 }).is_none());
}

/// The limit is a share of all included projects, even if the run selects only some.
#[test]
fn the_share_of_a_rule_also_counts_unselected_containers() {
    let refusal_count = |unread_count: usize| {
        let mut plan = plan_included_projects(8, 8, &Extent::default());
        plan.refusals.clear();
        for index in 0..unread_count {
            let path = format!("acme/beside{index}");
            let mut unselected_project =
                testing::container(Scope::Project, &path, &Json::Null, Unlisted::Report);
            unselected_project.including_glob = Some("acme/**".into());
            plan.count_included(&unselected_project);
        }
        let plan = plan.finish(&Extent::default());
        assert_eq!(plan.projects, 9, "they are not read");
        plan.refusals.len()
    };
    assert_eq!((refusal_count(0), refusal_count(71), refusal_count(72)), (1, 1, 0));
}

#[test]
fn the_reach_of_a_rule_is_acknowledged_by_its_glob_or_a_wider_one() {
    for (ack_text, is_acknowledged) in [
        ("reach:acme/**", true),
        ("reach:ACME/**", true),
        ("reach:**", true),
        ("reach:acme/*", false),
        ("reach:acme/p001", false),
        ("reach:acme/web/**", false),
        ("removals:acme/**", false),
    ] {
        let mut plan = plan_included_projects(20, 20, &Extent::default());
        assert!(plan.approve(ApprovalPolicy::default()).is_err());
        let ack = crate::desired::Acknowledgement::parse(ack_text).unwrap();
        plan.acknowledge(&[ack], &Moves::default(), jiff::civil::date(2030, 1, 1));
        assert_eq!(plan.refusals.is_empty(), is_acknowledged, "{ack_text}");
        assert_eq!(plan.approve(ApprovalPolicy::default()).is_ok(), is_acknowledged, "{ack_text}");
    }
}

#[test]
fn a_limit_keeps_the_first_containers_and_applies_before_guards() {
    let limit = NonZeroUsize::new(4);
    let plan =
        plan_included_projects(20, 19, &Extent { max_containers: limit, ..Extent::default() });
    let paths: Vec<_> = plan.steps.iter().map(|step| &*step.address.path).collect();
    assert_eq!(paths, ["acme/p000", "acme/p001", "acme/p002", "acme/p003"]);
    assert_eq!(plan.limited, Some(AppliedLimit { to: 4, left_out: 16 }));
    assert_eq!((plan.refusals.len(), plan.projects), (0, 21));
    let (approved, _) = plan.approve(ApprovalPolicy::default()).unwrap();
    assert!(approved.live("acme/p003").is_some() && approved.live("acme/p004").is_none());
    let limit = NonZeroUsize::new(30);
    let plan =
        plan_included_projects(20, 4, &Extent { max_containers: limit, ..Extent::default() });
    assert_eq!(plan.limited, Some(AppliedLimit { to: 30, left_out: 0 }));
}

#[test]
fn a_limit_includes_the_containers_that_a_step_depends_on() {
    let address = |path: &str| Address::container(path.into()).with_section("settings");
    let step = |path: &str, after: Option<&str>| {
        let edge = after.map(|path| Edge { address: address(path), reason: "x" });
        let step = Step::new(
            Scope::Project,
            address(path),
            Action::Update,
            origin(1),
            Vec::new(),
            Vec::new(),
        );
        Step { after: edge.into_iter().collect(), ..step }
    };
    let steps = vec![step("a", Some("c")), step("b", None), step("c", Some("d")), step("d", None)];
    let refusal = |path: &str| {
        let address = Address::container(path.into()).with_section("settings");
        GuardRefusal::new(Guard::Visibility, &address, "wider".to_owned(), 1, &origin(1))
    };
    let refusals = vec![refusal("b"), refusal("d")];
    let note = |path: &str, reason: Reason| Note {
        address: address(path),
        reason,
        fields: Vec::new(),
        origin: None,
    };
    let waits = || Reason::Waits { why: "for its group".into() };
    let side_effect = || Reason::Besides { what: "it restarts".into() };
    let lost_grants = || Reason::TakesAlong { grants_of: Vec::new() };
    let reasons = [waits(), side_effect(), lost_grants(), Reason::Unlisted];
    let notes = ["b", "c", "e"]
        .iter()
        .flat_map(|path| reasons.iter().map(|reason| note(path, reason.clone())));
    let findings = Findings { steps, refusals, notes: notes.collect(), ..Findings::default() };
    let mut plan = Plan::for_test(findings, 4);
    plan.keep_first_containers(1);
    let paths: Vec<_> = plan.steps.iter().map(|step| &*step.address.path).collect();
    assert_eq!(paths, ["a", "c", "d"]);
    let refused: Vec<_> = plan.refusals.iter().map(|refusal| &*refusal.address.path).collect();
    assert_eq!(refused, ["d"], "what is not done needs no leave");
    let count_notes =
        |path: &str| plan.notes.iter().filter(|note| &*note.address.path == path).count();
    assert_eq!(["b", "c", "e"].map(count_notes), [1, 4, 4], "only notes of steps go with them");
    assert_eq!(plan.limited, Some(AppliedLimit { to: 1, left_out: 1 }));
}

#[test]
fn a_vanished_included_project_is_a_note() {
    let sections = json!({"settings": {"merge_method": "ff"}});
    let mut declared = shop(&sections, Unlisted::Report);
    let vanished_plans = |declared: &Container| {
        let missing = target(declared);
        let read_at = Duration::ZERO;
        [
            LiveContainer::with_presence(Presence::Missing(missing), read_at),
            LiveContainer::with_presence(Presence::MissingNamespace("acme".to_owned()), read_at),
            LiveContainer::with_presence(Presence::Redirected { new_path: None }, read_at),
        ]
        .map(|live| plan_container(declared, &live, &settings(&[])))
    };
    assert!(vanished_plans(&declared).iter().all(|plan| plan.problems.len() == 1));
    declared.including_glob = Some("acme/**".into());
    for plan in vanished_plans(&declared) {
        let reasons: Vec<_> = plan.notes.iter().map(|note| note.reason.clone()).collect();
        assert_eq!((plan.problems.len(), reasons), (0, vec![Reason::Vanished]));
        assert!(plan.not_compared_cause.is_some());
    }
    let mut live = live_container(&declared, &json!({"settings": {"merge_method": "merge"}}));
    let Presence::Existing(_, facts) = &mut live.presence else { panic!() };
    facts.deletion_mark = Some(None);
    let plan = plan_container(&declared, &live, &settings(&[]));
    assert_eq!((plan.steps.len(), plan.notes.len()), (0, 1), "it is not restored");
}

#[test]
fn excluded_projects_of_a_roster_are_counted() {
    let container =
        |exclusion| MatchedContainer { scope: Scope::Project, path: String::new(), exclusion };
    let containers =
        [None, Some(ExclusionReason::Archived), Some(ExclusionReason::Archived)].map(container);
    let incomplete = vec![("acme/**".into(), Cause::new("answered 403"))];
    let roster = Roster {
        containers: containers.to_vec(),
        incomplete_globs: incomplete,
        ..Roster::default()
    };
    let plan = Plan::from_roster(roster).finish(&Extent::default());
    assert_eq!(plan.exceptions.into_iter().collect::<Vec<_>>(), [(ExclusionReason::Archived, 2)]);
    assert_eq!(plan.findings.incomplete[0].address.to_string(), "acme/**");
}
