//! How merge requests of a project are approved. Approvers are in [`super::approval_rules`]. It is
//! one object that always exists; the service changes it by POST.

use super::prelude::*;

pub(super) struct ApprovalSettings;

impl KindRules for ApprovalSettings {
    fn check(&self, declared: &Fields, _is_as_written: bool, report: Reporter<'_>) {
        let (resets, removes) = ("reset_approvals_on_push", "selective_code_owner_removals");
        if declared.is_on(resets) && declared.is_on(removes) {
            report(
                EntryFault::for_field(texts::APPROVALS_CONFLICT, removes).with_other_field(resets),
            );
        }
    }
}
