//! The settings for merge request approvals of a project. The approvers are in
//! [`super::approval_rules`]. The settings are one object, which always exists. A POST request
//! changes the object.

use super::prelude::*;

pub(super) struct ApprovalSettings;

impl KindRules for ApprovalSettings {
    fn check(&self, declared: &Fields, _is_unresolved: bool, report: Reporter<'_>) {
        let (reset_field, removal_field) =
            ("reset_approvals_on_push", "selective_code_owner_removals");
        if declared.is_on(reset_field) && declared.is_on(removal_field) {
            report(
                EntryFault::for_field(fault_text::APPROVALS_CONFLICT, removal_field)
                    .with_other_field(reset_field),
            );
        }
    }
}
