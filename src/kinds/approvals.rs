//! How merge requests of a project are approved, apart from who has to: see
//! [`super::approval_rule`]. One document, which is always there; the service changes it by POST.

use crate::operation;

use super::prelude::*;

/// How merge requests are approved. The service silently keeps what the installation or a group
/// above does not let projects decide; then the run says that it was not saved.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("minProperties" = 1))]
pub struct Approvals {
    /// Whether a push takes back the approvals that a merge request has.
    #[schemars(transform = FIELD.premium().weakens(When::Off))]
    pub reset_approvals_on_push: Option<bool>,
    /// Whether a push takes back only the approvals of the owners of changed files. Not together
    /// with `reset_approvals_on_push`.
    #[schemars(transform = FIELD.premium().since(16, 3).read_if_present().weakens(When::Off))]
    pub selective_code_owner_removals: Option<bool>,
    /// Whether the rules cannot be changed in a merge request.
    #[schemars(transform = FIELD.premium().weakens(When::Off))]
    pub disable_overriding_approvers_per_merge_request: Option<bool>,
    /// Whether authors may approve their own merge requests.
    #[schemars(transform = FIELD.premium().weakens(When::On))]
    pub merge_requests_author_approval: Option<bool>,
    /// Whether those who have committed to a merge request may not approve it.
    #[schemars(transform = FIELD.premium().weakens(When::Off))]
    pub merge_requests_disable_committers_approval: Option<bool>,
    /// Whether approving takes a password.
    #[schemars(transform = FIELD.premium().weakens(When::Off))]
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
        // It has no id; this is what every release shows.
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
            report(Fault::error(
                "approvals-conflict",
                "selective_code_owner_removals",
                "a push takes back either all approvals or some of them",
                "switch off one of `reset_approvals_on_push` and `selective_code_owner_removals`",
            ));
        }
    }
}
