//! How merge requests of a project are approved. Approvers are in [`super::approval_rule`]. It is
//! one object that always exists; the service changes it by POST.

use super::prelude::*;

pub(super) struct Settings;

impl Rules for Settings {
    fn check(&self, declared: &Fields, _written: bool, report: &mut dyn FnMut(Fault)) {
        let is_on = |name| declared.get(name).and_then(Value::flag) == Some(true);
        if is_on("reset_approvals_on_push") && is_on("selective_code_owner_removals") {
            let (own, other) = ("selective_code_owner_removals", "reset_approvals_on_push");
            let message = "a push takes back either all approvals or some of them";
            let help = format!("write `{other}: false`, or `{own}: false`");
            report(Fault::error("approvals-conflict", own, message, help).with(other));
        }
    }
}
