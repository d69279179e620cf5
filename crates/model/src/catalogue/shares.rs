//! Groups with which a project or a group is shared.
//!
//! The object of the project or group contains the list of shares. The service cannot edit a share.
//! A share that differs is removed and added again.

use super::{
    members::{gets_end_date, level_number},
    prelude::*,
};

/// The name of the section.
pub const SECTION: &str = "shares";

pub(super) struct Shares;

impl KindRules for Shares {
    // When a share is removed, the service also removes all grants to the group from rules.
    fn effects(&self, group_id: Option<u64>, before: &Object, after: &Object) -> Vec<Effect> {
        let is_removed = after.is_empty();
        let named_access_effect = Effect::Capability {
            capability: Capability::NamedAccess,
            had_capability: is_removed,
            has_capability: !is_removed,
        };
        let has_new_end_date = gets_end_date(before, after);
        let [level_before, level_after] =
            [before, after].map(|fields| level_number(fields, "group_access"));
        vec![
            Effect::Share {
                group_id,
                before: level_before,
                after: level_after,
                gets_end_date: has_new_end_date,
            },
            named_access_effect,
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        kind::{
            CallContext, NameIndex,
            calls::CallPurpose,
            testing::{
                existing_target, fields, live_entry, object, project_section, removal_requests,
                request_parts, requests_for,
            },
        },
        operation::{SHARE_CREATE, SHARE_DELETE},
        release::DetectedRelease,
        value::Json,
    };

    fn raw() -> Json {
        json!({
            "group_id": 4, "group_name": "Security", "group_full_path": "acme/Security",
            "group_access_level": 20, "expires_at": null,
        })
    }

    fn names() -> NameIndex {
        let mut names = NameIndex::default();
        names.insert(NamedObject::Group, "acme/security", Some(4));
        names
    }

    #[test]
    fn a_live_share_has_the_form_of_a_manifest() {
        let share = live_entry(project_section("shares"), raw());
        assert_eq!(
            *share.fields.raw(),
            object(
                json!({"group": "acme/Security", "group_access": "reporter", "expires_at": null})
            )
        );
        assert_eq!(project_section("shares").entry_name(share.fields.raw()), "acme/security");
    }

    #[test]
    fn a_share_is_added_by_the_id_of_its_group() {
        let declared = fields(json!({"group": "acme/Security", "group_access": "developer"}));
        let body = fields(json!({"group_id": 4, "group_access": 30}));
        assert_eq!(
            requests_for(project_section("shares"), &names(), CallPurpose::Create(&declared)),
            [SHARE_CREATE.request().with_argument("id", 7).with_fields(body)]
        );
        assert_eq!(
            removal_requests(project_section("shares"), raw()),
            [SHARE_DELETE.request().with_argument("id", 7).with_argument("group_id", 4)]
        );
    }

    #[test]
    fn a_share_that_differs_is_replaced_and_restored_if_that_fails() {
        let (declared, live) = (
            fields(json!({"group": "acme/security", "group_access": "developer"})),
            live_entry(project_section("shares"), {
                let mut raw = raw();
                raw["expires_at"] = "2099-01-31".into();
                raw
            }),
        );
        let context = CallContext {
            release: DetectedRelease::NotRequested,
            has_unique_address: true,
            section: project_section("shares"),
            target: &existing_target(),
            names: &NameIndex::default(),
            purpose: CallPurpose::Change(&declared, &live, &["group_access"]),
        };
        let calls = project_section("shares").rules().calls(&context).unwrap();
        let add_share = |level| {
            SHARE_CREATE.request().with_argument("id", 7).with_fields(fields(
                json!({"group_id": 4, "group_access": level, "expires_at": "2099-01-31"}),
            ))
        };
        let requests: Vec<_> = calls.iter().map(|call| call.request.clone()).collect();
        let remove = SHARE_DELETE.request().with_argument("id", 7).with_argument("group_id", 4);
        assert_eq!(
            request_parts(&requests),
            request_parts(&[remove, add_share(30), add_share(20)])
        );
        assert_eq!(
            calls.iter().map(|call| call.is_restore).collect::<Vec<_>>(),
            [false, false, true]
        );
    }
}
