//! Tests of copies: one run removes the duplicates of a section.

use super::*;
use crate::{address::Selector, catalogue, kind::Section, live::entry_ids};

const CREATED_AT: &str = "2026-01-31T12:00:00Z";
const CREATED_LATER: &str = "2026-01-31T13:00:00Z";

/// A section, a declared entry of the section, and the live object of the entry without its id.
type CopyCase = (Section, Json, Json);

/// A case for each section in which the service accepts duplicates.
fn all_cases() -> Vec<CopyCase> {
    catalogue::all_sections().filter(|section| section.allows_duplicates()).map(new_case).collect()
}

/// The case for `section`. The entry of a section without its own case has the fields of its
/// identity, with the examples from the table of the kind.
fn new_case(section: Section) -> CopyCase {
    let (declared, live_fields) = match section.section {
        "hooks" => (json!({"url": "https://h/x"}), json!({"created_at": CREATED_AT})),
        "pipeline_schedules" => (
            json!({"description": "n", "ref": "refs/heads/main", "cron": "0 1 * * *"}),
            json!({"created_at": CREATED_AT}),
        ),
        "remote_mirrors" => (
            json!({"url": {"env": "A"}, "enabled": true}),
            json!({
                "url": "https://*****:*****@h/x", "only_protected_branches": false,
                "keep_divergent_refs": false, "auth_method": "password",
                "mirror_branch_regex": null,
            }),
        ),
        _ => {
            let other_fields = match section.section {
                "freeze_periods" => json!({"created_at": CREATED_AT}),
                _ => json!({}),
            };
            let specs = section.specs().iter();
            let specs = specs.filter(|spec| section.identity.contains(&spec.name));
            let examples = specs.map(|spec| (spec.name.to_owned(), spec.field.examples[0].clone()));
            (Json::Object(examples.collect()), other_fields)
        }
    };
    let mut live = object(declared.clone());
    live.extend(object(live_fields));
    (section, declared, Json::Object(live))
}

fn add_id(raw: &Json, id: u64, other_fields: Json) -> Json {
    let mut raw = object(raw.clone());
    raw.insert("id".into(), id.into());
    raw.extend(object(other_fields));
    Json::Object(raw)
}

/// The plan for the declared entry of the case and these live entries.
fn plan_case((kind, declared, _): &CopyCase, live: &[Json], resend: &[Selector]) -> ContainerPlan {
    let declared = json!({kind.section: [declared]});
    let declared = container_of(kind.scoped_kind.scope, "acme/shop", &declared, Unlisted::Report);
    let live = live_container(&declared, &json!({kind.section: live}));
    let settings = settings(&[("A", "https://bot:secret-1234@h/x")]);
    plan_container(
        &declared,
        &live,
        &PlanSettings { resend_selectors: resend.to_vec(), ..settings },
    )
}

#[test]
fn copies_are_removed_by_one_run_and_the_next_one_plans_nothing() {
    for case in all_cases() {
        let raw = [4, 5].map(|id| add_id(&case.2, id, json!({})));
        let plan = plan_case(&case, &raw, &[]);
        let [step] = &plan.steps[..] else { panic!("{case:?}: {plan:#?}") };
        assert!(
            step.removes_copy && plan.incomplete.is_empty() && plan.refusals.is_empty(),
            "{plan:?}"
        );
        // The newest mirror has the current credential.
        let (removed_id, kept_id) =
            if case.0.section == "remote_mirrors" { (4, 5) } else { (5, 4) };
        assert_eq!(step.live_id(), Some(removed_id), "{case:?}");
        let id_text = format!("with the id {kept_id}");
        let shows = |note: &Note| format!("{:?}", note.reason).contains(&id_text);
        assert!(plan.notes.iter().any(shows), "{:?}", plan.notes);
        let kept_objects: Vec<_> =
            raw.into_iter().filter(|object| object["id"] == kept_id).collect();
        let plan = plan_case(&case, &kept_objects, &[]);
        assert!(plan.steps.is_empty() && plan.incomplete.is_empty(), "{case:?}: {plan:?}");
    }
}

#[test]
fn an_entry_with_other_attributes_or_made_later_by_hand_is_no_copy() {
    for case in all_cases() {
        for (other_fields, difference) in [
            (json!({"of_a_newer_release": 1}), "differ in `of_a_newer_release`"),
            (json!({"created_at": CREATED_LATER}), "created more than 15 minutes apart"),
        ] {
            let raw = [add_id(&case.2, 4, json!({})), add_id(&case.2, 5, other_fields.clone())];
            let plan = plan_case(&case, &raw, &[]);
            // Copies of other kinds have no hidden fields, so the time of creation does not matter.
            let is_open = !["hooks", "pipeline_schedules"].contains(&case.0.section);
            if other_fields.get("created_at").is_some() && is_open {
                assert!(plan.steps.len() == 1 && plan.incomplete.is_empty(), "{case:?}");
                continue;
            }
            assert!(plan.steps.is_empty(), "{case:?}: {plan:?}");
            let why = plan.incomplete[0].reason.message.to_string();
            assert!(why.contains(difference) && why.contains('4') && why.contains('5'), "{why}");
            assert!(!why.contains("https"), "{why}");
        }
    }
}

/// If a credential is resent, the newest entry is replaced and the copy is removed.
#[test]
fn a_renewal_replaces_the_newest_and_removes_the_rest() {
    let mirrors = new_case(catalogue::find_section(Scope::Project, "remote_mirrors").unwrap());
    let resend = [Selector::parse("**#remote_mirrors").unwrap()];
    let raw = [4, 5].map(|id| add_id(&mirrors.2, id, json!({})));
    let plan = plan_case(&mirrors, &raw, &resend);
    let requests: Vec<_> =
        plan.steps.iter().flat_map(Step::requests).map(ToString::to_string).collect();
    let [post, newest, copy] = &requests[..] else { panic!("{requests:?}") };
    assert!(post.starts_with("POST"), "{post}");
    assert!(
        newest.ends_with("remote_mirrors/5") && copy.ends_with("remote_mirrors/4"),
        "{requests:?}"
    );
}

/// Copies of a parent count as one parent. The declared entries below it are compared with the
/// entries below the kept parent.
#[test]
fn an_entry_below_copies_is_compared_below_the_one_that_stays() {
    let (section, declared, live_object) =
        new_case(catalogue::find_section(Scope::Project, "pipeline_schedules").unwrap());
    let raw = [5, 4].map(|id| add_id(&live_object, id, json!({})));
    let variable = json!({"schedule": "n", "key": "A", "value": "x"});
    let sections =
        json!({"pipeline_schedules": [declared], "pipeline_schedule_variables": [variable]});
    let declared = shop(&sections, Unlisted::Report);
    let mut live = live_container(&declared, &json!({"pipeline_schedules": raw}));
    let ids = entry_ids(section, &declared, &live.sections["pipeline_schedules"]);
    assert_eq!(ids.clone().unwrap()["n"], Some(Id::Known(4)));
    live.names.insert_entry_ids("pipeline_schedules", ids);
    live.sections.insert("pipeline_schedule_variables", LiveEntries::Nested(Vec::new()));
    let plan = plan_container(&declared, &live, &settings(&[]));
    assert!(plan.problems.is_empty(), "{:?}", plan.problems);
    let lines: Vec<_> =
        plan.steps.iter().flat_map(Step::requests).map(ToString::to_string).collect();
    assert!(
        lines.iter().any(|line| line.contains("POST") && line.contains("/4/variables")),
        "{lines:?}"
    );
    assert!(lines.iter().any(|line| line.contains("DELETE") && line.ends_with("/5")), "{lines:?}");
    // An unread list of variables does not prevent the removal of the copy.
    let unread = LiveEntries::Partial(Cause::new("cut"));
    live.sections.insert("pipeline_schedule_variables", unread);
    let plan = plan_container(&declared, &live, &settings(&[]));
    assert_eq!((plan.steps.len(), plan.incomplete.len()), (1, 0), "{plan:?}");
    live.sections.insert("pipeline_schedules", LiveEntries::Partial(Cause::new("cut")));
    let plan = plan_container(&declared, &live, &settings(&[]));
    assert_eq!((plan.steps.len(), plan.incomplete.len()), (0, 2), "{plan:?}");
}
