//! How merge requests of a project are approved. Approvers are in [`super::approval_rules`]. It is
//! one object that always exists; the service changes it by POST.

use super::prelude::*;

pub(super) struct ApprovalSettings;

impl Rules for ApprovalSettings {
    fn check(&self, declared: &Fields, _written: bool, report: &mut dyn FnMut(Fault)) {
        let is_on = |name| declared.get(name).and_then(Value::flag) == Some(true);
        if is_on("reset_approvals_on_push") && is_on("selective_code_owner_removals") {
            let fault = Fault::of(texts::APPROVALS_CONFLICT, "selective_code_owner_removals");
            report(fault.with("reset_approvals_on_push"));
        }
    }
}
