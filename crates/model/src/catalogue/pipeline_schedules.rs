//! Pipeline schedules of a project.
//!
//! The service identifies schedules by an id that manifests do not contain, and accepts two
//! schedules with the same description. undrift finds a schedule by its description. A schedule
//! runs with the rights of its owner, and only the owner may change it, so undrift takes over a
//! schedule of another user before a change. Variables of schedules are described in
//! `pipeline_schedule_variables.yaml`.

use std::collections::BTreeSet;

use crate::operation;

use super::prelude::*;

const OWNERSHIP_NOTE: &str = "ownership of the schedule moves to the token's user; its pipelines then run with that user's rights";
const RIGHTS_RISK: &str = "run its pipelines with the rights of the token's user";

/// The number of entries of `section` that the service accepts in a project by default; `None` if
/// there is no limit.
pub fn max_entries(section: Section) -> Option<usize> {
    (section.section == "pipeline_schedules").then_some(10)
}

pub(super) struct PipelineSchedules;

impl KindRules for PipelineSchedules {
    fn check(&self, declared: &Fields, _is_unresolved: bool, report: Reporter<'_>) {
        let inputs = declared.list_field("inputs").into_iter().flatten();
        let mut names = BTreeSet::new();
        for name in inputs.filter_map(|input| input.get("name")?.as_str()) {
            if !names.insert(name) {
                report(
                    EntryFault::for_field(fault_text::INPUT_TWICE, "inputs")
                        .fill("name", &text::escape(name)),
                );
            }
        }
    }

    fn calls(&self, context: &CallContext<'_>) -> Calls {
        let mut calls = context.default_calls()?;
        if let CallPurpose::Change(_, live, _) = context.purpose
            && (owner_id(live).is_none() || owner_id(live) != context.names.caller_id())
        {
            let takeover_call = context.entry_request(operation::SCHEDULE_TAKE, live).into();
            calls.insert(
                0,
                PlannedCall {
                    side_effects: Some(OWNERSHIP_NOTE),
                    opened_access: Some(RIGHTS_RISK),
                    ..takeover_call
                },
            );
        }
        Ok(calls)
    }
}

/// The id of the owner, if the response contains it.
fn owner_id(live: &LiveEntry) -> Option<u64> {
    live.whole_object.as_ref()?.raw().get("owner")?.get("id").and_then(Json::as_u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        kind::{
            NameIndex, forms,
            testing::{existing_target, fields, live_entry, project_section, requests_for},
        },
        operation::{SCHEDULE_TAKE, SCHEDULE_UPDATE},
        release::{self, DetectedRelease},
    };

    fn raw(owner: Json) -> Json {
        json!({
            "id": 3, "description": "nightly", "ref": "refs/heads/main", "cron": "0 4 * * *", "cron_timezone": "UTC",
            "active": true, "owner": owner,
        })
    }

    #[test]
    fn an_edit_sends_only_different_inputs() {
        let section = project_section("pipeline_schedules");
        let spec = section.spec("inputs").unwrap();
        let declared_inputs = |written_inputs: Json| {
            let mut value = Value::Plain(written_inputs);
            forms::normalize_spelling(spec, &mut value);
            Fields::from([("inputs".to_owned(), value)])
        };
        let mut raw = raw(json!({"id": 4}));
        raw["inputs"] = json!([{"name": "a", "value": "true"}, {"name": "b", "value": ["x", 1]}]);
        let existing_schedule = live_entry(section, raw);
        let names = NameIndex::default().with_caller_id(4);
        let destroyed_row = json!({"name": "b", "value": ["x", 1], "destroy": true});
        for (written, sent) in [
            (json!([{"name": "a", "value": true}]), json!([destroyed_row])),
            (
                json!([{"name": "b", "value": ["x", 1]}, {"name": "a", "value": 7}, {"name": "c"}]),
                json!([{"name": "a", "value": "7"}, {"name": "c", "value": ""}]),
            ),
        ] {
            let declared = declared_inputs(written);
            let edit = requests_for(
                section,
                &names,
                CallPurpose::Change(&declared, &existing_schedule, &["inputs"]),
            );
            assert_eq!(edit[0].body_fields().unwrap()["inputs"].plain_json(), Some(&sent));
        }
        let same_inputs = declared_inputs(
            json!([{"name": "b", "value": ["x", 1]}, {"name": "a", "value": true}]),
        );
        let comparable_inputs =
            forms::to_comparable(Some(spec), same_inputs["inputs"].plain_json().unwrap(), &names);
        assert!(forms::are_equal(
            spec.field.compare,
            &comparable_inputs,
            &existing_schedule.fields.raw()["inputs"]
        ));
        let new_fields = declared_inputs(json!([{"name": "c"}]));
        let create_requests = requests_for(section, &names, CallPurpose::Create(&new_fields));
        let expected = json!([{"name": "c", "value": ""}]);
        assert_eq!(
            create_requests[0].body_fields().unwrap()["inputs"].plain_json(),
            Some(&expected)
        );
    }

    #[test]
    fn a_schedule_of_another_user_is_taken_over_before_a_change() {
        let section = project_section("pipeline_schedules");
        let declared = fields(json!({"description": "nightly", "cron": "0 5 * * *"}));
        let edit_request = SCHEDULE_UPDATE
            .request()
            .with_argument("id", 7)
            .with_argument("pipeline_schedule_id", 3);
        let edit = edit_request.with_fields(fields(json!({"cron": "0 5 * * *"})));
        let takeover_request =
            SCHEDULE_TAKE.request().with_argument("id", 7).with_argument("pipeline_schedule_id", 3);
        let take_and_edit = vec![takeover_request, edit.clone()];
        for (owner, caller_id, expected) in [
            (json!({"id": 4}), Some(4), vec![edit]),
            (json!({"id": 5}), Some(4), take_and_edit.clone()),
            (json!({"id": 5}), None, take_and_edit.clone()),
            // The owner is a deleted user.
            (Json::Null, Some(4), take_and_edit.clone()),
            (Json::Null, None, take_and_edit),
        ] {
            let names = caller_id
                .map_or_else(NameIndex::default, |id| NameIndex::default().with_caller_id(id));
            let live_schedule = live_entry(section, raw(owner.clone()));
            let change = CallPurpose::Change(&declared, &live_schedule, &["cron"]);
            assert_eq!(requests_for(section, &names, change), expected, "{owner} {caller_id:?}");
            assert_eq!(
                requests_for(section, &names, CallPurpose::Remove(&live_schedule)).len(),
                1,
                "a removal needs no takeover"
            );
        }
    }

    #[test]
    fn the_plan_names_the_new_owner() {
        let section = project_section("pipeline_schedules");
        let declared = fields(json!({"description": "nightly", "active": false}));
        let live_schedule = live_entry(section, raw(json!({"id": 5})));
        let (names, release) =
            (NameIndex::default().with_caller_id(4), DetectedRelease::Known(release::REFERENCE));
        let purpose = CallPurpose::Change(&declared, &live_schedule, &["active"]);
        let target = existing_target();
        let context = CallContext {
            section,
            target: &target,
            names: &names,
            release,
            has_unique_address: true,
            purpose,
        };
        let side_effects: Vec<_> = PipelineSchedules
            .calls(&context)
            .unwrap()
            .iter()
            .map(|call| call.side_effects)
            .collect();
        assert_eq!(side_effects, [Some(OWNERSHIP_NOTE), None]);
    }

    #[test]
    fn a_short_name_waits_for_the_first_branch() {
        let live_schedule = live_entry(project_section("pipeline_schedules"), raw(Json::Null));
        for (declared, live, has_no_branch, is_waiting) in [
            ("main", None, true, true),
            ("main", None, false, false),
            ("refs/heads/main", None, true, false),
            ("main", Some(&live_schedule), true, false),
            ("next", Some(&live_schedule), true, true),
        ] {
            let declared = fields(json!({"description": "nightly", "ref": declared}));
            let section = project_section("pipeline_schedules");
            let reason =
                PipelineSchedules.wait_reason(section, "ref", &declared, live, has_no_branch);
            assert_eq!(reason.is_some(), is_waiting, "{declared:?} {has_no_branch}");
            assert_eq!(
                PipelineSchedules.wait_reason(section, "cron", &declared, live, has_no_branch),
                None
            );
        }
    }

    #[test]
    fn short_and_full_branch_names_are_equal() {
        let compare = project_section("pipeline_schedules").field("ref").compare;
        for (declared, live, is_same) in [
            ("main", "refs/heads/main", true),
            ("refs/heads/main", "main", true),
            ("main", "main", true),
            ("main", "Main", false),
            ("v1", "refs/tags/v1", false),
        ] {
            assert_eq!(
                forms::are_equal(compare, &declared.into(), &live.into()),
                is_same,
                "{declared} {live}"
            );
        }
    }
}
