//! How merge requests of a project are approved. Approvers are in [`super::approval_rule`]. It is
//! one object that always exists; the service changes it by POST.

use crate::operation;

use super::prelude::*;

/// How merge requests are approved. If the installation or a group above does not let projects
/// decide, the service silently keeps the old value, and the run reports that the new one was not
/// saved.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("minProperties" = 1))]
pub struct Approvals {
    /// Whether a push removes all approvals of a merge request.
    #[schemars(transform = field().premium().weakens(When::Off))]
    pub reset_approvals_on_push: Option<bool>,
    /// Whether a push removes only the approvals of the owners of changed files. Cannot be combined
    /// with `reset_approvals_on_push`.
    #[schemars(transform = field().premium().since(16, 3).read_if_present().weakens(When::Off))]
    pub selective_code_owner_removals: Option<bool>,
    /// Whether merge requests cannot change the rules.
    #[schemars(transform = field().premium().weakens(When::Off))]
    pub disable_overriding_approvers_per_merge_request: Option<bool>,
    /// Whether authors may approve their own merge requests.
    #[schemars(transform = field().premium().weakens(When::On))]
    pub merge_requests_author_approval: Option<bool>,
    /// Whether users who committed to a merge request may not approve it.
    #[schemars(transform = field().premium().weakens(When::Off))]
    pub merge_requests_disable_committers_approval: Option<bool>,
    /// Whether approving requires a password.
    #[schemars(transform = field().premium().weakens(When::Off))]
    pub require_password_to_approve: Option<bool>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(&schema::of::<Approvals>()));

/// The section `approvals`.
pub static KIND: Kind = Kind {
    section: "approvals",
    noun: "approvals",
    shape: Shape::Mapping,
    identity: &[],
    required: &[],
    removal: Removal::Nothing,
    homes: &[Home {
        scope: Scope::Project,
        fields: &TABLE,
        place: Place::Optional(operation::APPROVALS_GET),
        create: Create::With(operation::APPROVALS_UPDATE),
        change: Change::Edit(operation::APPROVALS_UPDATE),
        // It has no id. Every release shows this field.
        rows: Rows { keys: &["reset_approvals_on_push"], also: &[] },
        ..Home::PLAIN
    }],
    rules: &Settings,
};

struct Settings;

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
