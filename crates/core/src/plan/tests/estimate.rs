//! Tests of the estimated time.

use serde_json::json;

use super::*;

/// A plan for `project_count` projects with these sections and this live state.
fn plan(project_count: usize, sections: &Json, live: &Json) -> Plan {
    let mut plan = Plan::default();
    for index in 0..project_count {
        let declared =
            Container { path: format!("acme/p{index}").into(), ..shop(sections, Unlisted::Delete) };
        let live = live_container(&declared, live);
        plan.add(&declared, plan_container(&declared, &live, &settings(&[])), live);
    }
    plan.finish(&Extent::default())
}

#[test]
fn the_most_limited_budget_sets_the_estimate() {
    let edits = |number| {
        plan(
            number,
            &json!({"settings": {"merge_method": "ff"}}),
            &json!({"settings": {"merge_method": "merge"}}),
        )
    };
    let removals = |number| {
        plan(
            number,
            &json!({"members": []}),
            &json!({"members": [{"user": "bob", "access_level": "developer", "id": 9}]}),
        )
    };
    for (plan, per_minute, expected) in [
        (edits(10), None, None),
        (edits(10), Some(10), None),
        (edits(11), Some(10), Some((60, 10, None))),
        (edits(30), Some(10), Some((120, 10, None))),
        (removals(60), Some(2_000), None),
        (removals(61), Some(2_000), Some((60, 60, Some("project-member-remove")))),
        (removals(61), Some(20), Some((360, 20, None))),
        (Plan::default(), Some(1), None),
    ] {
        let estimate = plan.with_estimate(per_minute).estimate;
        let found = estimate.map(|found| (found.seconds, found.a_minute, found.operation));
        assert_eq!(found, expected, "at {per_minute:?}");
    }
}

/// The jobs of one run share the limit of the service.
#[test]
fn joined_plans_add_up_estimates_and_unread_containers() {
    let new_plan = |seconds: u64, unchanged: usize| Plan {
        estimate: Some(Estimate { requests: 2, seconds, a_minute: seconds, operation: None }),
        base: Some(BaseComparison { unchanged, ..BaseComparison::default() }),
        ..Plan::default()
    };
    let joined = Plan::join([new_plan(60, 3), Plan::default(), new_plan(120, 4)]);
    let expected = Estimate { requests: 4, seconds: 180, a_minute: 120, operation: None };
    assert_eq!(joined.estimate, Some(expected));
    assert_eq!(joined.base.unwrap().unchanged, 7);
}
